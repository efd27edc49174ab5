//! The open pull requests of a repository with their files.

use ralph_core::ports::{HostError, HostErrorKind, OpenPull};
use serde::Deserialize;
use serde_json::json;

use super::host::GitHubHost;
use super::transport::RequestEffect;

const QUERY: &str = "query($owner:String!,$name:String!,$after:String){repository(owner:$owner,name:$name){pullRequests(states:OPEN,first:50,after:$after,orderBy:{field:UPDATED_AT,direction:DESC}){pageInfo{hasNextPage endCursor} nodes{number url title headRefName baseRefName isCrossRepository headRepositoryOwner{login} files(first:100){pageInfo{hasNextPage} nodes{path}}}}}}";

/// The largest number of pull requests, and of the files of each.
const MAX_PULLS: usize = 300;
const MAX_FILES: usize = 300;

/// The largest number of pull requests whose files need requests of their own.
const MAX_LARGE_PULLS: usize = 20;

#[derive(Deserialize)]
struct OpenPullsData {
    repository: Option<OpenPullsRepository>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenPullsRepository {
    pull_requests: OpenPullsPage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenPullsPage {
    page_info: GraphQlPageInfo,
    nodes: Vec<Option<OpenPullNode>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GraphQlPageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenPullNode {
    number: u64,
    url: String,
    title: String,
    head_ref_name: String,
    base_ref_name: String,
    is_cross_repository: bool,
    head_repository_owner: Option<ForkOwner>,
    files: Option<OpenPullFiles>,
}

#[derive(Deserialize)]
struct ForkOwner {
    login: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenPullFiles {
    page_info: GraphQlPageInfo,
    nodes: Vec<Option<OpenPullFile>>,
}

#[derive(Deserialize)]
struct OpenPullFile {
    path: String,
}

impl OpenPullNode {
    /// Converts it to the port's type. Returns also whether it has more files.
    fn into_pull(self) -> (OpenPull, bool) {
        let has_more = self
            .files
            .as_ref()
            .is_some_and(|files| files.page_info.has_next_page);
        let files = self.files.into_iter().flat_map(|files| files.nodes);
        let files = files.flatten().map(|file| file.path).collect();
        // The branch of a fork may have the name of one here.
        let head = match self.head_repository_owner {
            Some(owner) if self.is_cross_repository => {
                format!("{}:{}", owner.login, self.head_ref_name)
            }
            None if self.is_cross_repository => format!("?:{}", self.head_ref_name),
            Some(_) | None => self.head_ref_name,
        };
        let pull = OpenPull {
            number: self.number,
            url: self.url,
            title: self.title,
            head,
            base: self.base_ref_name,
            files,
        };
        (pull, has_more)
    }
}

impl GitHubHost {
    /// Returns the open pull requests with their files, the last updated first.
    pub(super) async fn list_open_pulls(&self) -> Result<Vec<OpenPull>, HostError> {
        let mut pulls = Vec::new();
        let mut after = None;
        let mut large = 0;
        while pulls.len() < MAX_PULLS {
            let page = self.open_pulls_page(after.as_deref()).await?;
            for node in page.nodes.into_iter().flatten() {
                let (mut pull, has_more) = node.into_pull();
                if has_more && large < MAX_LARGE_PULLS {
                    large += 1;
                    pull.files = self.files(pull.number, MAX_FILES).await?;
                }
                pull.files.sort();
                pull.files.truncate(MAX_FILES);
                pulls.push(pull);
            }
            after = page.page_info.end_cursor;
            if !page.page_info.has_next_page || after.is_none() {
                break;
            }
        }
        pulls.truncate(MAX_PULLS);
        Ok(pulls)
    }

    async fn open_pulls_page(&self, after: Option<&str>) -> Result<OpenPullsPage, HostError> {
        let repo = self.client.repo();
        let variables = json!({"owner": repo.owner(), "name": repo.name(), "after": after});
        let data = self.client.graphql(QUERY, variables, RequestEffect::Read);
        let failed = |kind| HostError {
            request: "POST /graphql".to_owned(),
            request_id: None,
            kind,
        };
        let data: OpenPullsData = serde_json::from_value(data.await?).map_err(|error| {
            let why = format!("the response is not the documented JSON: {error}");
            failed(HostErrorKind::Unexpected { why })
        })?;
        let repository = data.repository.ok_or_else(|| {
            let message = "the repository is not visible".to_owned();
            failed(HostErrorKind::NotFound { message })
        })?;
        Ok(repository.pull_requests)
    }
}
