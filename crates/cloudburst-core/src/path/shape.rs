//! The number of uplinks at each layer of a fabric's switches.

use core::fmt;

/// The maximum number of paths of a shape: a [`PathId`](crate::id::PathId) has 16 bits.
pub const MAX_SHAPE_PATHS: usize = u16::MAX as usize;
/// The number of layers with fan-out 2 that fit into [`MAX_SHAPE_PATHS`].
const MAX_LAYERS: usize = 15;

/// The uplinks that a packet chooses from at each layer: all that digit reversal must know.
///
/// A path is numbered by its choices, the one at the lowest switch (the TOR) first: with fan-outs
/// f1, f2 and choices c1, c2 it has the number c1 f2 + c2. Paths that share an uplink of the TOR are
/// thus neighbours, as are the core switches above one aggregation switch in Figure 1(a) of the DRB
/// paper. A path map must number its paths in this way, or digit reversal does not spread the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    kind: Kind,
    /// The fan-out at each layer, from the TOR up; 1 where there is no such layer.
    fan_outs: [u16; MAX_LAYERS],
}

/// A value that is not valid in the shape of a fabric. The configuration is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting `order.{field}` is {value}: it must be {expected}")]
#[non_exhaustive]
pub struct ShapeError {
    /// The part of the shape.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The values that are valid.
    pub expected: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    FatTree { ports: u16 },
    Vl2 { tor: u16, aggregation: u16, spine: u16 },
    Layers,
}

impl Shape {
    /// Returns the shape of a Fat-tree of switches with `ports` ports (section 2.1): `ports / 2`
    /// aggregation switches above each TOR and `ports / 2` core switches above each of these. Path `i`
    /// crosses core switch `i`, 3.i in Figure 1(a).
    ///
    /// # Errors
    ///
    /// [`ShapeError`] unless `ports` is even and between 4 and 510.
    pub fn fat_tree(ports: u16) -> Result<Self, ShapeError> {
        if !ports.is_multiple_of(2) || !(4..=510).contains(&ports) {
            return Err(refuse("fat-tree", ports, "an even number of ports between 4 and 510"));
        }
        let fan_outs = of_layers(&[ports / 2, ports / 2]).ok_or_else(|| too_many(ports))?;
        Ok(Self { kind: Kind::FatTree { ports }, fan_outs })
    }

    /// Returns the shape of a VL2 (section 2.1) whose TORs have `tor` uplinks, and whose aggregation
    /// and spine switches have `aggregation` and `spine` ports: d0, d1 and d2 of the paper.
    ///
    /// Each of the d1 / 2 spine switches is split into d0 virtual ones (section 3.2), because d0 ways
    /// up and d0 ways down lead through a whole one. Path `i` crosses virtual spine `i`: spine
    /// `i % (d1 / 2)`, through the ports to aggregation switch `i / (d1 / 2)` of each group of d0. To
    /// be addressed as a bouncing switch, each virtual spine needs an address of its own.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] unless `tor` is at least 2, `aggregation` even and at least 4,
    /// `spine` a multiple of `tor`, and the virtual spines no more than [`MAX_SHAPE_PATHS`].
    pub fn vl2(tor: u16, aggregation: u16, spine: u16) -> Result<Self, ShapeError> {
        if tor < 2 {
            return Err(refuse("vl2.d0", tor, "at least 2 uplinks of a TOR"));
        }
        if !aggregation.is_multiple_of(2) || aggregation < 4 {
            let expected = "an even number of ports of an aggregation switch, at least 4";
            return Err(refuse("vl2.d1", aggregation, expected));
        }
        if !spine.is_multiple_of(tor) || spine == 0 {
            // Otherwise they cannot be divided evenly among the virtual switches.
            let expected = "a number of ports of a spine switch that is a multiple of d0";
            return Err(refuse("vl2.d2", spine, expected));
        }
        let fan_outs = of_layers(&[tor, aggregation / 2])
            .ok_or_else(|| too_many(format_args!("{tor},{aggregation},{spine}")))?;
        Ok(Self { kind: Kind::Vl2 { tor, aggregation, spine }, fan_outs })
    }

    /// Returns the shape of any other fabric, given the fan-out at each layer from the TOR up. A
    /// leaf-spine of four spines is `[4]`; an oversubscribed Fat-tree may be `[2, 8]`. Leave out layers
    /// with a single uplink.
    ///
    /// With one layer there is nothing to reverse, and paths are visited as in round robin.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] if there is no layer, if a fan-out is less than two, or if there are more than
    /// [`MAX_SHAPE_PATHS`] paths.
    pub fn layers(fan_outs: &[u16]) -> Result<Self, ShapeError> {
        if fan_outs.is_empty() || fan_outs.iter().any(|&fan_out| fan_out < 2) {
            let expected = "one fan-out or more, each at least 2";
            return Err(refuse("layers", joined(fan_outs), expected));
        }
        match of_layers(fan_outs) {
            Some(fan_outs) => Ok(Self { kind: Kind::Layers, fan_outs }),
            None => Err(too_many(joined(fan_outs))),
        }
    }

    /// Returns the fan-out at each layer, from the TOR up.
    pub fn fan_outs(&self) -> &[u16] {
        let layers = self.fan_outs.iter().take_while(|&&fan_out| fan_out > 1).count();
        &self.fan_outs[..layers]
    }

    /// Returns the number of paths: of core switches, or of virtual spines.
    pub fn paths(&self) -> usize {
        self.fan_outs().iter().map(|&fan_out| usize::from(fan_out)).product()
    }

    /// Returns the path for `number`, which is below [`paths`](Self::paths): DR(r) of section 3.1.2,
    /// with digits in a number system whose radices are the fan-outs.
    ///
    /// The last digit, which changes with each number, chooses the uplink of the TOR.
    pub(super) fn reverse(&self, number: u64) -> u64 {
        let mut rest = number;
        let mut path = 0;
        for &fan_out in self.fan_outs() {
            path = path * u64::from(fan_out) + rest % u64::from(fan_out);
            rest /= u64::from(fan_out);
        }
        path
    }
}

/// Pads the fan-outs with ones. Returns `None` if there are too many paths.
fn of_layers(fan_outs: &[u16]) -> Option<[u16; MAX_LAYERS]> {
    let mut paths = 1_usize;
    for &fan_out in fan_outs {
        paths =
            paths.checked_mul(usize::from(fan_out)).filter(|&paths| paths <= MAX_SHAPE_PATHS)?;
    }
    let mut padded = [1; MAX_LAYERS];
    padded.get_mut(..fan_outs.len())?.copy_from_slice(fan_outs);
    Some(padded)
}

fn refuse(field: &'static str, value: impl ToString, expected: &'static str) -> ShapeError {
    ShapeError { field, value: value.to_string(), expected }
}

fn too_many(value: impl ToString) -> ShapeError {
    refuse("paths", value, "a shape of at most 65535 paths")
}

fn joined(fan_outs: &[u16]) -> String {
    let fan_outs: Vec<String> = fan_outs.iter().map(u16::to_string).collect();
    fan_outs.join("x")
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::FatTree { ports } => write!(f, "fat-tree:{ports}"),
            Kind::Vl2 { tor, aggregation, spine } => write!(f, "vl2:{tor},{aggregation},{spine}"),
            Kind::Layers => f.write_str(&joined(self.fan_outs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_switches_of_the_papers_example_are_visited_in_its_order() {
        // Section 3.1.2, for the Fat-tree of Figure 1(a): 3.0, 3.2, 3.1, 3.3.
        let shape = Shape::fat_tree(4).unwrap();
        let visited: Vec<u64> = (0..4).map(|number| shape.reverse(number)).collect();
        assert_eq!(visited, [0, 2, 1, 3]);
    }

    #[test]
    fn digits_of_unequal_radices_are_reversed_with_them() {
        let shape = Shape::layers(&[2, 3]).unwrap();
        let visited: Vec<u64> = (0..6).map(|number| shape.reverse(number)).collect();
        assert_eq!(visited, [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn with_two_equal_digits_reversing_twice_changes_nothing() {
        for ports in (4..=24).step_by(2) {
            let shape = Shape::fat_tree(ports).unwrap();
            let numbers = 0..shape.paths() as u64;
            assert!(
                numbers.into_iter().all(|number| shape.reverse(shape.reverse(number)) == number)
            );
        }
    }

    #[test]
    fn shapes_have_the_papers_numbers_of_paths() {
        // Sections 5 and 6: Fat-trees of 24 ports and of 54 servers, and a VL2.
        assert_eq!(Shape::fat_tree(24).unwrap().paths(), 144);
        assert_eq!(Shape::fat_tree(6).unwrap().paths(), 9);
        assert_eq!(Shape::vl2(4, 64, 24).unwrap().fan_outs(), [4, 32]);
        assert_eq!(Shape::layers(&[2; MAX_LAYERS]).unwrap().paths(), 1 << MAX_LAYERS);
    }
}
