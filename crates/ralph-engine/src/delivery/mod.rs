//! What comes out of a run: `publish` pushes the branch and keeps the pull request, `verify` judges
//! a commit in a clean room, `pull_body` finds the words.

mod publish;
mod pull_body;
mod verify;
