// Cargo wants a target; there is none (Cargo.toml).
