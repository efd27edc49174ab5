//! Reserves the maximum cost of a model call before it is sent.

use ralph_core::budget::{self, Budget, BudgetLimits, Spent};
use ralph_core::ports::{Model, ModelRequest, TokenUsage};
use ralph_core::price::{self, Price};

/// A request within the budgets.
pub(crate) struct ReservedRequest {
    /// The request with its output limit.
    pub(crate) request: ModelRequest,
    /// The most that it can be billed for; none for a model without an output limit.
    pub(crate) usage: Option<TokenUsage>,
}

/// Limits the output of a request to the remaining budgets. The error is the budget that cannot pay
/// for the input and a short reply.
pub(crate) fn reserve_request(
    model: &dyn Model,
    price: &Price,
    limits: &BudgetLimits,
    spent: &Spent,
    request: &ModelRequest,
) -> Result<ReservedRequest, Budget> {
    let mut request = request.clone();
    let Some(wanted) = model.output_limit() else {
        return Ok(ReservedRequest {
            request,
            usage: None,
        });
    };
    let input = request.max_input_tokens();
    let output = budget::max_output_tokens(limits, spent, price, input, wanted)?;
    if limits.max_cost.is_some() || limits.max_tokens.is_some() {
        request.max_output_tokens = Some(output);
    }
    Ok(ReservedRequest {
        request,
        usage: Some(price::worst_usage(price, input, output)),
    })
}
