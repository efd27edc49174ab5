// Performs ralph's operations on a server with Octokit. See scripts/github.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const place = `${process.env.GITHUB_TOOLS}/node_modules/@octokit/core/dist-src/index.js`;
const { Octokit } = await import(pathToFileURL(place));
const [baseUrl, auth, sha] = process.argv.slice(2);
const octokit = new Octokit({ baseUrl, auth });
const repo = { owner: "octo", repo: "app" };
const call = async (route, parameters = {}) => (await octokit.request(route, { ...repo, ...parameters })).data;

assert.equal((await call("GET /user")).login, "octocat");
assert.equal((await call("GET /repos/{owner}/{repo}")).default_branch, "main");
const opened = await call("POST /repos/{owner}/{repo}/pulls", {
  title: "One", head: "ralph/octokit", base: "main", body: "text", draft: true,
});
const pull_number = opened.number;
const issue_number = pull_number;
await assert.rejects(
  call("POST /repos/{owner}/{repo}/pulls", { title: "Two", head: "ralph/octokit", base: "main" }),
  (error) => error.status === 422 && error.message.includes("already exists"),
);
const list = await call("GET /repos/{owner}/{repo}/pulls", { state: "open", head: "octo:ralph/octokit" });
assert.deepEqual(list.map((pull) => pull.number), [pull_number]);
await call("PATCH /repos/{owner}/{repo}/pulls/{pull_number}", { pull_number, title: "Two" });
const ready = await octokit.graphql(
  "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{id isDraft}}}",
  { id: opened.node_id },
);
assert.equal(ready.markPullRequestReadyForReview.pullRequest.isDraft, false);
const read = await call("GET /repos/{owner}/{repo}/pulls/{pull_number}", { pull_number });
assert.deepEqual([read.title, read.draft, read.head.sha], ["Two", false, sha]);
await assert.rejects(
  octokit.graphql("mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{id isDraft}}}", { id: "none" }),
  /global id/,
);
await call("POST /repos/{owner}/{repo}/issues/{issue_number}/labels", { issue_number, labels: ["status:ready"] });
const rest = await call("DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}", { issue_number, name: "status:ready" });
assert.deepEqual(rest, []);
const comment = await call("POST /repos/{owner}/{repo}/issues/{issue_number}/comments", { issue_number, body: "hello" });
await call("PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}", { comment_id: comment.id, body: "changed" });
const comments = await call("GET /repos/{owner}/{repo}/issues/{issue_number}/comments", { issue_number });
assert.equal(comments[0].body, "changed");
await call("POST /repos/{owner}/{repo}/statuses/{sha}", { sha, state: "success", context: "ralph/octokit" });
const status = await call("GET /repos/{owner}/{repo}/commits/{ref}/status", { ref: sha });
assert.equal(status.state, "success");
const checks = await call("GET /repos/{owner}/{repo}/commits/{ref}/check-runs", { ref: sha, filter: "latest" });
assert.ok(checks.total_count > 0);
const issues = await call("GET /repos/{owner}/{repo}/issues", { labels: "spec", state: "open" });
assert.ok(issues.length > 0);
