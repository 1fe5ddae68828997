//! When the popover is shown and hidden, as a pure state machine.
//!
//! A click on the icon while the popover is open takes the focus away: blur hides the popover when the button
//! goes down, and a naive toggle would show it again when the button comes up. So what a click does is decided
//! by what was visible when the button went down, or just before, as the blur may be heard of first.

use std::time::Duration;

/// A blur and a press closer together than this are one press.
const ONE_PRESS: Duration = Duration::from_millis(150);

/// Something that happens to the icon or the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The button went down on the icon.
    Down,
    /// The button came up on the icon.
    Up,
    /// Another window has the focus now.
    Blur,
    /// The person pressed Escape, or asked for the window to go away in another way.
    Dismiss,
    /// A menu item or a second start asks for the window.
    Summon,
    /// Files are being dragged over the window.
    DragEnter,
    /// They were dropped, or left.
    DragEnd,
}

/// What to do with the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing.
    Keep,
    /// Show it and give it the focus.
    Show,
    /// Hide it.
    Hide,
}

/// What has happened so far, as far as it matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Toggle {
    visible: bool,
    /// Whether it was visible when the button went down; `None` outside a click.
    visible_at_down: Option<bool>,
    /// When a blur hid it.
    hidden_by_blur: Option<Duration>,
    dragging: bool,
    /// Whether it goes away when another window gets the focus.
    hides_on_blur: bool,
}

impl Toggle {
    /// A hidden popover.
    pub(crate) fn new(hides_on_blur: bool) -> Self {
        Self { hides_on_blur, ..Self::default() }
    }

    /// Takes in `event`, which happened at `now` on any steady clock, and says what to do.
    pub(crate) fn on(&mut self, event: Event, now: Duration) -> Action {
        match event {
            Event::Down => {
                let hidden_just_now =
                    self.hidden_by_blur.is_some_and(|at| now.saturating_sub(at) < ONE_PRESS);
                self.visible_at_down = Some(self.visible || hidden_just_now);
                Action::Keep
            }
            Event::Up => match self.visible_at_down.take() {
                Some(true) => self.become_visible(false),
                Some(false) => self.become_visible(true),
                // A click whose beginning was elsewhere.
                None => Action::Keep,
            },
            Event::Blur if self.visible && self.hides_on_blur && !self.dragging => {
                self.hidden_by_blur = Some(now);
                self.become_visible(false)
            }
            Event::Blur => Action::Keep,
            Event::Dismiss => self.become_visible(false),
            Event::Summon => {
                self.visible = true;
                Action::Show
            }
            Event::DragEnter => {
                self.dragging = true;
                Action::Keep
            }
            Event::DragEnd => {
                self.dragging = false;
                Action::Keep
            }
        }
    }

    fn become_visible(&mut self, visible: bool) -> Action {
        if self.visible == visible {
            return Action::Keep;
        }
        self.visible = visible;
        if visible { Action::Show } else { Action::Hide }
    }
}

#[cfg(test)]
mod tests {
    use super::Action::{Hide, Keep, Show};
    use super::Event::{Blur, Dismiss, Down, DragEnd, DragEnter, Summon, Up};
    use super::*;

    /// Steps are a second apart.
    fn check(what: &str, hides_on_blur: bool, steps: &[(Event, Action)]) {
        let timed: Vec<_> = steps.iter().map(|(event, action)| (1000, *event, *action)).collect();
        check_timed(what, hides_on_blur, &timed);
    }

    fn check_timed(what: &str, hides_on_blur: bool, steps: &[(u64, Event, Action)]) {
        let mut toggle = Toggle::new(hides_on_blur);
        let mut now = Duration::ZERO;
        for (number, (after_ms, event, expected)) in steps.iter().enumerate() {
            now += Duration::from_millis(*after_ms);
            assert_eq!(toggle.on(*event, now), *expected, "{what}: step {number}, {event:?}");
        }
    }

    #[test]
    fn the_popover_comes_and_goes_as_asked() {
        let click_to_open = [(Down, Keep), (Up, Show)];
        let then = |more: &[(Event, Action)]| [&click_to_open, more].concat();
        check(
            "a click opens, a click closes",
            true,
            &then(&[(Down, Keep), (Up, Hide), (Down, Keep), (Up, Show)]),
        );
        let steps = then(&[(Down, Keep), (Blur, Hide), (Up, Keep), (Down, Keep), (Up, Show)]);
        check("the press that closes takes the focus", true, &steps);
        check(
            "a click elsewhere closes, and a later one opens",
            true,
            &then(&[(Blur, Hide), (Blur, Keep), (Down, Keep), (Up, Show)]),
        );
        check("escape closes once", true, &[(Summon, Show), (Dismiss, Hide), (Dismiss, Keep)]);
        check("summoning an open window brings it to the front", true, &[(Summon, Show), (Summon, Show)]);
        check("a release alone does nothing", true, &[(Up, Keep)]);
        check(
            "a drag keeps it open",
            true,
            &[(Summon, Show), (DragEnter, Keep), (Blur, Keep), (DragEnd, Keep), (Blur, Hide)],
        );
        check("a plain window stays", false, &[(Summon, Show), (Blur, Keep), (Dismiss, Hide)]);
    }

    #[test]
    fn a_blur_heard_of_before_its_press_still_closes() {
        check_timed(
            "blur, then press",
            true,
            &[
                (0, Summon, Show),
                (900, Blur, Hide),
                (20, Down, Keep),
                (80, Up, Keep),
                (900, Down, Keep),
                (80, Up, Show),
            ],
        );
    }
}
