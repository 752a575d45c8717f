//! What instructions compute: warps, lanes, divergence, memory spaces.
