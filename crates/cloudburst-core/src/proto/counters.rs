//! Counters that can be listed by name.

/// Defines a struct of counters, and a method that lists them: a new counter reaches all languages by itself.
macro_rules! counters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$what:meta])* pub $field:ident: u64,)* }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$what])* pub $field: u64,)*
        }

        impl $name {
            /// The names of the fields, and their values.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }
    };
}
