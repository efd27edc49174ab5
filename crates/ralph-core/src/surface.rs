//! stub
/// c
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// a
    Added,
    /// m
    Modified,
    /// d
    Deleted,
}
/// cp
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// p
    pub path: String,
    /// c
    pub change: Change,
}
/// f
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// p
    pub path: String,
    /// w
    pub why: String,
}
/// s
#[derive(Debug, Clone, Default)]
pub struct Surface {
    /// a
    pub verification: Vec<Finding>,
    /// b
    pub executes_for_developers: Vec<Finding>,
    /// c
    pub workflows: Vec<Finding>,
    /// d
    pub deleted_tests: Vec<String>,
}
/// t
pub fn touched(_p: &[ChangedPath], _c: &[String]) -> Surface {
    Surface::default()
}
