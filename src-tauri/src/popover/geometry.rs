//! Where the popover goes, in physical pixels from the top left of the main screen.

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    /// Left edge.
    pub(crate) x: i32,
    /// Top edge.
    pub(crate) y: i32,
    /// Width.
    pub(crate) width: i32,
    /// Height.
    pub(crate) height: i32,
}

impl Area {
    /// Whether the point lies inside.
    pub(crate) fn contains(&self, x: i32, y: i32) -> bool {
        (self.x..self.x + self.width).contains(&x) && (self.y..self.y + self.height).contains(&y)
    }

    /// The point in the middle.
    pub(crate) fn centre(&self) -> (i32, i32) {
        (self.x + self.width / 2, self.y + self.height / 2)
    }
}

/// The top left corner of a popover of `width` by `height` that hangs centred under `icon`, with `gap` between
/// them, inside `work_area` as far as it has room; where it has not, the top left stays visible.
pub(crate) fn place(icon: Area, work_area: Area, width: i32, height: i32, gap: i32) -> (i32, i32) {
    let x = icon.x + (icon.width - width) / 2;
    let y = icon.y + icon.height + gap;
    let within = |at: i32, from: i32, room: i32, size: i32| at.min(from + room - size).max(from);
    (
        within(x, work_area.x + gap, work_area.width - 2 * gap, width),
        within(y, work_area.y, work_area.height - gap, height),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_popover_hangs_under_its_icon_on_its_screen() {
        let area = |x, y, width, height| Area { x, y, width, height };
        let screen = area(0, 25, 1440, 875);
        let cases = [
            ("in the middle", area(700, 0, 24, 24), screen, (502, 30)),
            ("at the right edge", area(1410, 0, 24, 24), screen, (1014, 30)),
            ("at the left edge", area(2, 0, 24, 24), screen, (6, 30)),
            ("on a screen to the left", area(-100, 0, 24, 24), area(-1280, 25, 1280, 775), (-426, 30)),
            ("under a notch", area(900, 0, 24, 37), area(0, 38, 1512, 944), (702, 43)),
            ("on a low screen", area(700, 0, 24, 24), area(0, 25, 1440, 500), (502, 25)),
            ("on a narrow screen", area(100, 0, 24, 24), area(0, 25, 300, 875), (6, 30)),
        ];
        for (what, icon, work_area, expected) in cases {
            assert_eq!(place(icon, work_area, 420, 640, 6), expected, "{what}");
        }
    }

    #[test]
    fn an_area_knows_what_lies_in_it() {
        let area = Area { x: -10, y: 0, width: 10, height: 10 };
        assert!(area.contains(-10, 9) && !area.contains(0, 5) && !area.contains(-5, 10));
        assert_eq!(area.centre(), (-5, 5));
    }
}
