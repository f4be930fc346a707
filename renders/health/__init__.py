"""Is all well, and if not, what is to be done? For load balancers, monitors and people.

`findings` says what can be found, `probes` asks without being held up by a server that is silent;
the other modules ask one sort of server each. `readiness` serves `/readyz`, `doctor` the command.
"""
