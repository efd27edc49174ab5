//! GitHub's own description of its API judges the requests of the client and the responses of the fake.

use ralph_test::{FakeGitHubToken, judge_github};

use super::fixture::{ScmTest, fine_grained};

#[test]
fn requests_and_responses_match_githubs_description() {
    let (app, missing, renamed) = (
        ScmTest::with_app(),
        ScmTest::with_app(),
        ScmTest::with_classic(),
    );
    missing.github.state().installations = vec!["other".into()];
    {
        let mut state = renamed.github.state();
        let repository = state.repositories.remove("octo/app").unwrap();
        state.repositories.insert("octo/new".into(), repository);
        let names = ("octo/app".to_owned(), "octo/new".to_owned());
        state.renamed.extend([names]);
    }
    let probed = ScmTest::with_token(&fine_grained(), FakeGitHubToken::FineGrained(&[]));
    let rejected = ScmTest::new().env("GITHUB_PAT", &fine_grained());
    let mut exchanges = Vec::new();
    for test in [app, missing, renamed, probed, rejected] {
        test.check();
        exchanges.extend(test.github.ledger());
    }
    judge_github(&exchanges);
}
