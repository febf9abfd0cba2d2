// Cargo requires a target. This package compiles no Rust (Cargo.toml).
