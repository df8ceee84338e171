use std::ffi::OsStr;

use super::*;

#[test]
fn the_name_of_the_program_chooses_the_product() {
    for (program, product) in [
        ("turnpike", Product::Turnpike),
        ("/usr/sbin/turnpike", Product::Turnpike),
        ("/opt/nginx/sbin/turnpike", Product::Turnpike),
        ("nginx", Product::Nginx),
        ("/usr/sbin/nginx", Product::Nginx),
        ("./nginx.old", Product::Nginx),
        ("", Product::Turnpike),
    ] {
        assert_eq!(
            Product::of_program(OsStr::new(program)),
            product,
            "{program}"
        );
    }
}

#[test]
fn both_products_have_the_same_versions() {
    for product in [Product::Turnpike, Product::Nginx] {
        assert!(product.name_and_version().starts_with(product.name()));
        assert!(
            product
                .name_and_build()
                .starts_with(product.name_and_version())
        );
        assert_eq!(
            product.name_and_build(),
            format!("{} ({})", product.name_and_version(), product.build())
        );
        assert!(product.name_and_build().contains(NGINX_VERSION));
        assert!(product.name_and_build().contains(TURNPIKE_VERSION));
    }
}
