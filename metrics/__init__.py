"""Eight ``evaluate`` modules, and the leaves that they import, in one flat folder.

``evaluate.load`` fetches the files that a module names itself. A leaf may import leaves; the module then names these
too, `from .leaf import name as name` where it uses nothing of them; `build metrics` adds the lines that are missing.

modules    eraser_agreement  eraser_faithfulness  perturbation_map  rationale_set_agreement  normalized_fidelity
           annotator_agreement  quote_faithfulness
maths      spans  rankings  erasure  fidelity  rank_consistency  rationale_sets  answer_f1  annotators
           nominal_agreement: agreement between annotators
           agreement (its scores: agreement_scores)  faithfulness: the one path from instances to columns of statistics
frame      cells  token_rows  sources  issues  unknown_fields  tokens  clusters  results  resampling
           statistics_builder
plain      plain_rows  quote_alignment  quotes: what a language model says
input      columns  arrow_columns  flatten  flat  checks  joining  matching; batches, instances, rows,
           annotator_rows, annotator_columns
"""
