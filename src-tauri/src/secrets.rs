//! The endpoint's token, in the system's keychain.
//!
//! Nothing here runs before the token is needed: on macOS the first look into the keychain may ask the person.

use std::sync::{Mutex, PoisonError};

use perch_model::ErrorCode;

use crate::ipc::types::AppError;

/// Keeps one secret.
pub(crate) trait SecretStore: Send + Sync {
    /// What was kept last.
    fn get(&self) -> Result<Option<String>, AppError>;
    /// Keeps `secret` in place of what was there.
    fn set(&self, secret: &str) -> Result<(), AppError>;
}

/// The system's keychain, or memory where `PERCH_SECRETS=memory` asks for it.
pub(crate) fn store() -> Box<dyn SecretStore> {
    if std::env::var_os("PERCH_SECRETS").is_some_and(|value| value == "memory") {
        tracing::warn!("PERCH_SECRETS=memory: the endpoint's token is forgotten when Perch ends");
        return Box::new(Memory::default());
    }
    Box::new(Keychain)
}

/// The endpoint's token; made and kept when there is none yet.
pub(crate) fn token(store: &dyn SecretStore) -> Result<String, AppError> {
    match store.get()? {
        Some(token) => Ok(token),
        None => renew_token(store),
    }
}

/// A new token in place of the old one.
pub(crate) fn renew_token(store: &dyn SecretStore) -> Result<String, AppError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| {
        AppError::new(ErrorCode::Internal, format!("the system gave no random numbers: {error}"), None)
    })?;
    let token = random.iter().fold("perch-".to_owned(), |token, byte| token + &format!("{byte:02x}"));
    store.set(&token)?;
    Ok(token)
}

/// The system's keychain: Keychain Services on macOS, the Secret Service on Linux.
struct Keychain;

impl Keychain {
    fn entry() -> Result<keyring::Entry, AppError> {
        // Opening the store fails once and for all; its own words say more than the entry's.
        if let Err(error) = keyring::Entry::store_status() {
            return Err(unusable(error));
        }
        keyring::Entry::new("app.perch.Perch", "endpoint").map_err(|error| unusable(&error))
    }
}

impl SecretStore for Keychain {
    fn get(&self) -> Result<Option<String>, AppError> {
        match Self::entry()?.get_password() {
            Ok(secret) => Ok(Some(secret)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(unusable(&error)),
        }
    }

    fn set(&self, secret: &str) -> Result<(), AppError> {
        Self::entry()?.set_password(secret).map_err(|error| unusable(&error))
    }
}

fn unusable(error: &keyring::Error) -> AppError {
    let hint = if cfg!(target_os = "macos") {
        "Allow Perch to use its keychain item, or unlock the login keychain in Keychain Access."
    } else {
        "Start and unlock a keychain such as GNOME Keyring or KWallet."
    };
    AppError::new(ErrorCode::Storage, format!("the keychain refused: {error}"), Some(hint))
}

/// Forgets with the process.
#[derive(Default)]
pub(crate) struct Memory(Mutex<Option<String>>);

impl SecretStore for Memory {
    fn get(&self) -> Result<Option<String>, AppError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn set(&self, secret: &str) -> Result<(), AppError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(secret.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_until_it_is_renewed() {
        let store = Memory::default();
        let first = token(&store).unwrap();
        assert_eq!(first.len(), "perch-".len() + 64);
        assert!(first.starts_with("perch-"));
        assert_eq!(token(&store).unwrap(), first);
        let second = renew_token(&store).unwrap();
        assert_ne!(second, first);
        assert_eq!(token(&store).unwrap(), second);
    }
}
