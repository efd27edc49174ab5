use super::*;
use crate::task::keys::{CI, OVERLAP, PR, RESOURCES, REVIEWS, ROOT, VERIFICATION};

#[test]
fn every_key_of_a_task_file_is_in_the_table() {
    let sections = [
        "pr",
        "ci",
        "reviews",
        "overlap",
        "sandbox_resources",
        "verification",
    ];
    let top = ROOT
        .into_iter()
        .filter(|key| !sections.contains(key))
        .map(str::to_owned);
    let below = PR.map(|key| format!("pr.{key}")).into_iter();
    let sizes = RESOURCES.map(|key| format!("sandbox_resources.{key}"));
    let verification = VERIFICATION.map(|key| format!("verification.{key}"));
    let publishing = CI
        .map(|key| format!("ci.{key}"))
        .into_iter()
        .chain(REVIEWS.map(|key| format!("reviews.{key}")))
        .chain(OVERLAP.map(|key| format!("overlap.{key}")));
    for key in top
        .chain(below)
        .chain(sizes)
        .chain(verification)
        .chain(publishing)
    {
        assert!(rule(TrustFile::Task, &key, None).is_some(), "{key}");
    }
}

#[test]
fn every_rule_that_needs_approval_describes_its_effect() {
    for rule in RULES {
        let is_harmless = rule.authority == TrustAuthority::Harmless;
        assert_eq!(is_harmless, rule.allows.is_empty(), "{rule:?}");
    }
}

#[test]
fn a_value_that_allows_no_more_than_the_one_in_force_is_harmless() {
    // Key, value, value in force, authority.
    let rows = r#"
        sandbox.network.policy | "deny" | "allow-all" | Harmless
        sandbox.network.policy | "allowlist" | "deny" | Proposal
        sandbox.network.policy | "allow-all" | "deny" | UserOnly
        sandbox.network.policy | "allow-all" | "allow-all" | Harmless
        sandbox.network.allowed | ["a"] | ["a", "b"] | Harmless
        sandbox.network.allowed | ["c"] | ["a", "b"] | Proposal
        sandbox.docker.hosts | ["tcp://evil"] | [] | UserOnly
        sandbox.docker.hosts | [] | ["unix:///a"] | Harmless
        sandbox.network.provider_tools | ["urls"] | [] | UserOnly
        sandbox.network.provider_tools | [] | ["urls"] | Harmless
        sandbox.provider | "docker" | "local" | Harmless
        sandbox.provider | "local" | "docker" | UserOnly
        sandbox.provider | "tpyo" | "docker" | UserOnly
        sandbox.provider | "tpyo" | "tpyo" | Harmless
        sandbox.enabled | false | true | UserOnly
        sandbox.resources.memory | 1 | 2 | Harmless
        sandbox.resources.memory | 3 | 2 | Proposal
        sandbox.resources.memory | "1" | 2 | Proposal
        sandbox.network.model_requests_per_minute | 0 | 10 | Proposal
        sandbox.network.model_requests_per_minute | 10 | 0 | Harmless
        sandbox.network.model_requests_per_minute | null | 10 | Proposal
        git.state_ref | true | false | UserOnly
        git.state_ref | false | true | Harmless
        ci.required | false | true | UserOnly
        ci.required | false | false | Harmless
        ci.required | true | false | Harmless
        reviews.respond | true | false | Proposal
        reviews.respond | false | true | Harmless
        overlap.action | "warn" | "pause" | UserOnly
        overlap.action | "pause" | "warn" | Harmless
        issues.authors | ["eve"] | ["@me"] | UserOnly
        issues.authors | ["a"] | ["a", "b"] | Harmless
        issues.max_cost_usd_estimate | 100 | 10 | Proposal
        issues.max_cost_usd_estimate | 5 | 10 | Harmless
        issues.max_tokens_total | 0 | 1000 | Proposal
        issues.workers | 8 | 1 | Proposal
        monitoring.show_progress | false | true | Harmless
        some.new.key | 1 | 1 | UserOnly
    "#;
    for row in rows.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let (value, in_force) = (json(cells[1]), json(cells[2]));
        let (authority, _) = judge(TrustFile::Settings, cells[0], &value, Some(&in_force));
        assert_eq!(format!("{authority:?}"), cells[3], "{row}");
    }
    assert!(is_weaker_sandbox("local", "docker"));
    assert!(!is_weaker_sandbox("docker", "local"));
    assert!(!is_weaker_sandbox("docker", "docker"));
}

#[test]
fn names_chosen_by_a_file_may_contain_dots() {
    let key = "profiles.gpt-4.1.api_key_env";
    let found = rule(TrustFile::Models, key, None).map(|rule| rule.authority);
    assert_eq!(found, Some(TrustAuthority::UserOnly));
    let found = rule(TrustFile::AgentLoop, "Dockerfile.sandbox", None);
    assert_eq!(
        found.map(|rule| rule.authority),
        Some(TrustAuthority::Proposal)
    );
    let found = rule(TrustFile::AgentLoop, "agent", None);
    assert_eq!(
        found.map(|rule| rule.authority),
        Some(TrustAuthority::Harmless)
    );
}

#[test]
fn a_long_value_is_another_proposal_when_its_end_changes() {
    let rule = rule(TrustFile::AgentLoop, "Dockerfile.sandbox", None).unwrap();
    let proposal = |end: &str| {
        let text = "x".repeat(1000) + end;
        TrustProposal::new("f", "k", &text, rule)
    };
    assert_ne!(proposal("a").approved(), proposal("b").approved());
    assert!(proposal("a").value.len() < 300);
}
