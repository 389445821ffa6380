//! The examples are in the parent folder. This crate tests the code in the README and in the documents.

macro_rules! tested {
    ($($document:literal)*) => {$(
        #[cfg(doctest)]
        #[doc = include_str!(concat!("../../", $document))]
        const _: () = ();
    )*};
}

tested! {
    "README.md"
    "docs/first-message.md"
    "docs/service.md"
    "docs/cluster.md"
    "docs/coming-from.md"
    "docs/compatibility.md"
}
