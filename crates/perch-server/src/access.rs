//! Who may come in: the token, and checks that keep web pages out.
//!
//! A page in a browser can send requests to this machine. `Origin` tells on pages of other sites; `Host` tells on
//! sites that let their own name point to this machine (DNS rebinding).

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use perch_engine::{ErrorCode, Failure};
use subtle::ConstantTimeEq;

use crate::App;
use crate::error::ApiError;

/// A new token: 256 random bits.
///
/// # Errors
/// When the system gives no random bits.
pub fn new_token() -> Result<String, Failure> {
    let mut bits = [0u8; 32];
    getrandom::fill(&mut bits).map_err(|error| {
        Failure::new(
            ErrorCode::Internal,
            format!("the system gave no random bits: {error}"),
            "Start Perch again.",
        )
    })?;
    Ok(bits.iter().fold("perch-".to_owned(), |token, byte| format!("{token}{byte:02x}")))
}

/// Lets a request through or answers it.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let allowed = check_host(request.headers(), app.host)
        .and_then(|()| check_origin(request.headers()))
        .and_then(|()| {
            let open = request.uri().path() == "/health";
            if open { Ok(()) } else { check_token(request.headers(), app.token.as_deref()) }
        });
    match allowed {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Tells browsers that a page of this machine, which [`check`] lets in, may read the answers.
pub(crate) async fn share_with_pages(State(app): State<App>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let Some(origin) = origin.filter(|_| check_origin(request.headers()).is_ok()) else {
        return next.run(request).await;
    };
    // Before the request itself a browser asks, without the token, what it may send.
    let asks = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let wanted = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let mut response = if asks && check_host(request.headers(), app.host).is_ok() {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        if let Some(wanted) = wanted {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted);
        }
        response
    } else {
        next.run(request).await
    };
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Origin"));
    response
}

/// An address is what it says; a name may point anywhere, so only this machine's own is taken.
fn check_host(headers: &HeaderMap, bound: IpAddr) -> Result<(), ApiError> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host_name(host);
    let allowed = match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || !bound.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    };
    if allowed { Ok(()) } else { Err(ApiError::forbidden(format!("the Host {host:?} is not this machine"))) }
}

/// Pages of this machine may ask, pages of other sites may not. Programs send no `Origin`.
fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let name = origin.split_once("://").map_or("", |(_, host)| host_name(host));
    let local =
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if local {
        Ok(())
    } else {
        Err(ApiError::forbidden(format!("requests from the Origin {origin:?} are not allowed")))
    }
}

fn check_token(headers: &HeaderMap, expected: Option<&str>) -> Result<(), ApiError> {
    let Some(expected) = expected else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| value.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    match given {
        Some((_, token)) if bool::from(token.trim().as_bytes().ct_eq(expected.as_bytes())) => Ok(()),
        Some(_) => Err(ApiError::unauthorized("the token is not right; copy it from Perch's settings")),
        None => Err(ApiError::unauthorized(
            "a token is needed: send the header Authorization: Bearer TOKEN with the token from Perch's settings",
        )),
    }
}

/// The host of `host:port`, without brackets around an IPv6 address.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or("", |(address, _)| address);
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}
