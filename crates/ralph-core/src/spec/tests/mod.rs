mod conversion;
mod editing;
mod hostile;
mod parsing;

use super::*;
use crate::lint::LintFinding;

/// A specification with three steps, the first of which is done.
const BODY: &str = "---
branch: feat/greet
base: main
depends: [24, #25]
---
# Spec: Greeting

## Implementation Plan

### Step 1: Add `greet` [done]

**Files:** `greet.py`

**Verify:** Run `pytest -k greet`. Fix any failures.

### Step 2: Add tests

- [ ] an unnamed user
- [ ] a named user

```sh
# Verify: `rm -rf /`
### Step 9: not a step
```

Test:
- greets everybody

### Step 3: Run all checks

Verify: All checks pass clean.

## Conventions

Python 3.
";

fn spec(body: &str) -> Spec {
    Spec::parse(7, "Spec: Greeting", body).unwrap()
}

fn codes(findings: &[LintFinding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.code).collect()
}
