"""Performs ralph's operations on a server with PyGithub. See scripts/github."""

import sys

from github import Auth, Github, GithubException


def main(url, token, sha):
    """Performs the operations, and fails with an assertion or an exception of PyGithub."""
    github = Github(base_url=url, auth=Auth.Token(token), retry=None, seconds_between_requests=0, seconds_between_writes=0)
    assert github.get_user().login == "octocat"
    repo = github.get_repo("octo/app")
    assert repo.default_branch == "main"
    assert repo.get_branch("main").commit.sha == sha
    pull = repo.create_pull(title="One", head="ralph/pygithub", base="main", body="text", draft=True)
    assert pull.draft and pull.head.sha == sha
    try:
        repo.create_pull(title="Two", head="ralph/pygithub", base="main", body="")
        raise AssertionError("a second pull request was opened")
    except GithubException as error:
        assert error.status == 422, error
    found = repo.get_pulls(state="open", head="octo:ralph/pygithub")
    assert [each.number for each in found] == [pull.number]
    pull.edit(title="Two", body="new text")
    pull.mark_ready_for_review()
    again = repo.get_pull(pull.number)
    assert (again.title, again.draft) == ("Two", False)
    issue = repo.get_issue(pull.number)
    issue.add_to_labels("status:ready")
    issue.remove_from_labels("status:ready")
    assert [label.name for label in issue.get_labels()] == []
    comment = issue.create_comment("hello")
    comment.edit("changed")
    assert [each.body for each in issue.get_comments()] == ["changed"]
    repo.create_label("status:done", "0e8a16", "A state")
    assert "status:done" in [label.name for label in repo.get_labels()]
    commit = repo.get_commit(sha)
    commit.create_status("success", description="ok", context="ralph/pygithub")
    assert commit.get_combined_status().state == "success"
    assert commit.get_check_runs().totalCount > 0
    assert [each.user.login for each in repo.get_pull(1).get_reviews()] == ["ann"]
    assert repo.get_issues(state="open", labels=["spec"]).totalCount > 0


if __name__ == "__main__":
    main(*sys.argv[1:4])
