"""Jobs, plans, and how they are carried out: the only place that knows caching, leases, resuming
and workers."""
