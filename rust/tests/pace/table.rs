// SPDX-License-Identifier: GPL-2.0

//! Tables of what was simulated, to choose bounds by.

use super::drive::Drive;
use super::flusher::run;
use super::load::loads;
use super::machine::Policy;
use writeback::pace::{Bounds, BOUNDS};

/// Each policy on each load.
pub(crate) fn policies(drive: Drive) {
    println!(
        "\n{:12} {:10} {:>6} {:>6} {:>8} {:>10} {:>9} {:>10}",
        drive.name, "", "MiB/s", "KiB", "written", "wakes/MiB", "MiB dirty", "ms oldest"
    );
    for load in loads() {
        for (name, policy) in [
            ("buffered", Policy::Buffered),
            ("kick", Policy::Kick),
            ("adaptive", Policy::Adaptive(BOUNDS, 1.0)),
        ] {
            let is = run(&load, policy, drive);
            println!(
                "{:12} {name:10} {:6.1} {:6.1} {:8.3} {:10.2} {:9.2} {:10.1}",
                load.name,
                is.to_durable,
                is.each_write,
                is.amplification,
                is.wake_ups,
                is.peak_dirty,
                is.oldest
            );
        }
    }
}

/// One bound after the other, and an estimate of the bandwidth that is wrong: of each load the ratios
/// to buffered writeback of MiB/s to durable and of KiB a write, milliseconds of the oldest page, and
/// MiB that are dirty at most.
pub(crate) fn bounds(drive: Drive) {
    let loads = loads();
    let buffered: Vec<_> = loads
        .iter()
        .map(|load| run(load, Policy::Buffered, drive))
        .collect();
    print!("\n{:20} {:>4}", drive.name, "est.");
    for load in &loads {
        print!(" |{:^19}", load.name);
    }
    println!();
    for (name, bounds, estimate) in settings() {
        print!("{name:20} {estimate:4}");
        for (load, buffered) in loads.iter().zip(&buffered) {
            let is = run(load, Policy::Adaptive(bounds, estimate), drive);
            print!(
                " |{:4.2} {:4.2} {:4.0} {:4.1}",
                is.to_durable / buffered.to_durable,
                is.each_write / buffered.each_write,
                is.oldest,
                is.peak_dirty
            );
        }
        println!();
    }
}

fn settings() -> Vec<(String, Bounds, f64)> {
    let mut settings: Vec<_> = [0.1, 1.0, 10.0]
        .map(|estimate| ("as they are".to_owned(), BOUNDS, estimate))
        .into();
    let mut set = |name: &str, value: i64| {
        let mut bounds = BOUNDS;
        let milliseconds = u32::try_from(value).unwrap();
        match name {
            "least_pages" => bounds.least_pages = value,
            "most_pages" => bounds.most_pages = value,
            "inode_pages" => bounds.inode_pages = value,
            "least_delay_ms" => bounds.least_delay_ms = milliseconds,
            "most_delay_ms" => bounds.most_delay_ms = milliseconds,
            _ => unreachable!("no bound"),
        }
        if bounds.are_valid(12) {
            // The least number of pages is that of a device which is believed to be slow.
            let estimate = if name == "least_pages" { 0.1 } else { 1.0 };
            settings.push((format!("{name} {value}"), bounds, estimate));
        }
    };
    for pages in [32, 128, 256, 512, 1024, 2048] {
        set("least_pages", pages);
    }
    for pages in [512, 1024, 2048, 4096, 8192] {
        set("most_pages", pages);
    }
    for pages in [0, 32, 64, 128, 256, 512] {
        set("inode_pages", pages);
    }
    for milliseconds in [5, 10, 20, 40, 100] {
        set("least_delay_ms", milliseconds);
    }
    for milliseconds in [50, 100, 200, 400] {
        set("most_delay_ms", milliseconds);
    }
    settings
}
