"""Results on disk -> pages. Reads rows, claims, figures and samples; computes nothing, imports
neither torch nor studies."""

from recombine.report.page import write_study
from recombine.report.site import write_site

__all__ = ["write_site", "write_study"]
