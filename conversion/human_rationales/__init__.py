"""Human-rationale corpora (SST, WikiAttack): their files <-> rows."""
