//! Embeds the configuration, the capabilities and the page.

fn main() {
    tauri_build::build();
}
