"""Picture <-> latent grid."""
