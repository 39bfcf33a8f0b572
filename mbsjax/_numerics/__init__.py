"""Mathematics of fixed shape: the algebras SE2 and SE3, small linear algebra, one step of a solver, tables of loops."""
