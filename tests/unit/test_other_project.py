"""The other project, without servers: nothing of it is missing, or in the way."""

import subprocess
import sys

from tests.integration.studio import FOLDER, Studio


def test_it_is_complete_and_its_user_needs_no_migration_of_the_app(tmp_path):
    code = (
        "import django; django.setup();"
        "from django.core.management import call_command as call;"
        "call('check', fail_level='WARNING');"
        "call('makemigrations', check_changes=True, dry_run=True)"
    )
    environment = Studio(tmp_path).environment | {"DJANGO_SETTINGS_MODULE": "studio.settings"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=FOLDER,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout and "No changes detected" in done.stdout
