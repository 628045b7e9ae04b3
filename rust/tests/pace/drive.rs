// SPDX-License-Identifier: GPL-2.0

//! Drives that limit the bytes and the requests of a second, each by itself, as QEMU and providers do.

pub(crate) const PAGE: u64 = 4096;

const SECOND: u64 = 1_000_000_000;

/// What limits a drive. The names and figures are those of the benchmark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drive {
    pub(crate) name: &'static str,
    /// In a second.
    pub(crate) bytes: u64,
    /// In a second, if it cares.
    requests: Option<u64>,
    /// What it does at once if it has rested is what it does in this time.
    burst: u64,
}

pub(crate) const CLOUD: Drive = Drive {
    name: "cloud",
    bytes: 125 << 20,
    requests: Some(3000),
    burst: 0,
};

pub(crate) const BURSTING: Drive = Drive {
    name: "bursting",
    burst: SECOND / 10,
    ..CLOUD
};

pub(crate) const STREAM: Drive = Drive {
    name: "stream",
    bytes: 112 << 20,
    requests: None,
    burst: 0,
};

impl Drive {
    /// The largest request.
    pub(crate) const LARGEST: u64 = (512 << 10) / PAGE;
    /// How many may be under way.
    pub(crate) const DEPTH: usize = 1023;
    /// What each takes beside the limits.
    pub(crate) const LATENCY: u64 = 100_000;

    /// Pages in a second.
    pub(crate) fn bandwidth(&self) -> u64 {
        self.bytes / PAGE
    }
}

/// The requests that a drive has got.
#[derive(Debug)]
pub(crate) struct Queue {
    drive: Drive,
    bytes_until: u64,
    requests_until: u64,
    pub(crate) under_way: usize,
    /// What it has finished.
    pub(crate) writes: u64,
    pub(crate) pages: u64,
}

impl Queue {
    pub(crate) fn new(drive: Drive) -> Self {
        Self {
            drive,
            bytes_until: 0,
            requests_until: 0,
            under_way: 0,
            writes: 0,
            pages: 0,
        }
    }

    /// Takes a request, and says when it will be done.
    pub(crate) fn submit(&mut self, now: u64, pages: u64) -> u64 {
        self.under_way += 1;
        let rested = now.saturating_sub(self.drive.burst);
        let bytes = pages * PAGE * SECOND / self.drive.bytes;
        self.bytes_until = self.bytes_until.max(rested) + bytes;
        if let Some(requests) = self.drive.requests {
            self.requests_until = self.requests_until.max(rested) + SECOND / requests;
        }
        self.bytes_until.max(self.requests_until).max(now) + Drive::LATENCY
    }

    pub(crate) fn done(&mut self, pages: u64) {
        self.under_way -= 1;
        self.writes += 1;
        self.pages += pages;
    }
}
