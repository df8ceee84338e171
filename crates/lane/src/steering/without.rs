//! The replacement for the steering program in builds without it: the same names, and one error.

use std::{
    convert::Infallible,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use super::{Reason, SteerRules};
use crate::{affinity::CpuSet, gate::Gate};

/// The board as a BPF array; not available in this build.
#[derive(Debug)]
pub struct KernelBoard(Infallible);

impl KernelBoard {
    /// Always [`Reason::NotBuilt`].
    pub fn create() -> Result<KernelBoard, Reason> {
        Err(Reason::NotBuilt)
    }

    /// Always [`Reason::NotBuilt`].
    pub fn adopt(_map: OwnedFd) -> Result<KernelBoard, Reason> {
        Err(Reason::NotBuilt)
    }
}

impl AsFd for KernelBoard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) migrates: bool,
    never: Infallible,
}

impl Program {
    pub(super) fn attach(
        board: &KernelBoard,
        _gates: &[Gate],
        _lanes: usize,
        _homes: &[CpuSet],
        _rules: SteerRules,
    ) -> Result<Program, Reason> {
        match board.0 {}
    }

    pub(super) fn adjust(
        &self,
        _gates: &[Gate],
        _lanes: usize,
        _homes: &[CpuSet],
        _rules: SteerRules,
    ) -> Result<(), Reason> {
        match self.never {}
    }

    pub(super) fn take_charge(&self, _gate: &Gate) -> Result<(), Reason> {
        match self.never {}
    }

    pub(super) fn set_gate(&self, _lane: usize, _gate: &Gate) -> Result<(), Reason> {
        match self.never {}
    }
}
