"""The seven ``evaluate`` modules, and beside them, flat, the leaves that they import.

``evaluate.load`` fetches the files that a module names itself. A leaf may import leaves; the module then names these
too, `from .leaf import name as name` where it uses nothing of them, and `build metrics` holds it to that.

modules    eraser_agreement  eraser_faithfulness  perturbation_map  rationale_set_agreement  normalized_fidelity
           annotator_agreement  quote_faithfulness
maths      spans  rankings  erasure  fidelity  rank_consistency  rationale_sets  answer_f1  annotators
           agreement (its scores: agreement_scores)  faithfulness: the one path from instances to columns of statistics
frame      cells  token_rows  sources  issues  unknown_fields  tokens  clusters  pool  results  resampling
input      columns  arrow_columns  flatten  flat  checks  joining  parts; batches, instances, rows
"""
