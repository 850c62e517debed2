"""From numbers to words: facts, rules, findings and the verdict."""
