"""A certificate for 127.0.0.1, made for one run."""

import shutil
import subprocess
from pathlib import Path

import certifi

OPTIONS = (
    *("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
    *("-days", "2", "-subj", "/CN=127.0.0.1"),
    *("-addext", "subjectAltName=IP:127.0.0.1"),
    *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
)


def make(folder: Path) -> tuple[str, str]:
    """The file with key and certificate, and that of whom clients trust; empty without openssl.

    All whom clients trust by themselves are in it: to read that file is part of their work.
    """
    trusted, own = folder / "trusted.pem", folder / "own.pem"
    everybody = Path(certifi.where()).read_text()
    if not shutil.which("openssl"):
        return "", certifi.where()
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", *OPTIONS, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    own.write_text(key.read_text() + certificate.read_text())
    trusted.write_text(everybody + certificate.read_text())
    return str(own), str(trusted)
