"""Health checks: what is wrong, and what to do about it. For load balancers, monitors and people.

`findings` lists every possible finding. `probes` asks servers in threads, so a silent server
delays nothing else. The other modules each ask one kind of server. `readiness` serves `/readyz`;
`doctor` serves the command.
"""
