"""Functions of small arrays, computed entry by entry.

A mechanism's formulas are written with arrays: bodies, freedoms and rows are axes. For a few bodies, most of such a
program moves entries about, and multiplies by the zeros and ones of its structure. `by_components` takes a traced
function apart: each entry of each array is a number of its own, moving it costs nothing, zeros and ones vanish, what
is computed twice is computed once, and what nobody reads is not computed. Plain operations are left, on all lanes at
once, which compilers fuse into few loops.
"""
