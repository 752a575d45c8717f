//! Registers and places, as types.

use std::fmt;

/// A general register: R0 to R254, and RZ, which reads zero and drops writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reg(pub u8);

impl Reg {
    pub const RZ: Reg = Reg(255);
    /// General registers a thread can have.
    pub const COUNT: usize = 255;

    pub fn is_zero(self) -> bool {
        self == Reg::RZ
    }
}

/// A uniform register: one value a warp. UR0 to UR62, and URZ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UReg(pub u8);

impl UReg {
    pub const URZ: UReg = UReg(63);
    pub const COUNT: usize = 63;
}

/// A predicate: P0 to P6, and PT, which is always true.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pred(pub u8);

impl Pred {
    pub const PT: Pred = Pred(7);
    pub const COUNT: usize = 7;
}

/// A predicate as a source: negated or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PredUse {
    pub pred: Pred,
    pub neg: bool,
}

impl PredUse {
    pub const TRUE: PredUse = PredUse { pred: Pred::PT, neg: false };
    pub const FALSE: PredUse = PredUse { pred: Pred::PT, neg: true };

    pub fn new(pred: Pred) -> Self {
        PredUse { pred, neg: false }
    }

    pub fn negated(self) -> Self {
        PredUse { neg: !self.neg, ..self }
    }
}

/// A convergence-barrier register: for each lane, the lanes it will meet again. B0 to B15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BReg(pub u8);

impl BReg {
    pub const COUNT: usize = 16;
}

/// A place in a program, counted in instructions from the image's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pc(pub u32);

impl Pc {
    /// Bytes from the start of the code.
    pub fn byte(self) -> u64 {
        u64::from(self.0) * 16
    }
}

macro_rules! special {
    ($($name:ident $text:literal $doc:literal;)*) => {
        /// Read-only special registers, read by `S2R`, `S2UR` and `CS2R`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Special { $(#[doc = $doc] $name,)* }

        impl Special {
            pub const ALL: &[Special] = &[$(Special::$name,)*];

            pub fn name(self) -> &'static str {
                match self { $(Special::$name => $text,)* }
            }

            pub fn doc(self) -> &'static str {
                match self { $(Special::$name => $doc,)* }
            }

            pub fn from_bits(bits: u32) -> Option<Self> {
                Special::ALL.get(bits as usize).copied()
            }
        }
    };
}

special! {
    TidX "SR_TID.X" "thread in the CTA, x";
    TidY "SR_TID.Y" "thread in the CTA, y";
    TidZ "SR_TID.Z" "thread in the CTA, z";
    CtaidX "SR_CTAID.X" "CTA in the grid, x";
    CtaidY "SR_CTAID.Y" "CTA in the grid, y";
    CtaidZ "SR_CTAID.Z" "CTA in the grid, z";
    LaneId "SR_LANEID" "lane in the warp";
    WarpId "SR_VIRTID.WARP" "warp slot in the CTA";
    NWarpId "SR_NWARPID" "warp slots of the SM";
    SmId "SR_SMID" "the SM";
    NSmId "SR_NSMID" "SMs of the machine";
    LaneMaskEq "SR_EQMASK" "bit of this lane";
    LaneMaskLt "SR_LTMASK" "bits of lower lanes";
    LaneMaskLe "SR_LEMASK" "bits of this and lower lanes";
    LaneMaskGt "SR_GTMASK" "bits of higher lanes";
    LaneMaskGe "SR_GEMASK" "bits of this and higher lanes";
    ClockLo "SR_CLOCKLO" "cycle counter, low word (a pair with CS2R.64)";
    ClockHi "SR_CLOCKHI" "cycle counter, high word";
    GlobalTimerLo "SR_GLOBALTIMERLO" "nanoseconds, low word (a pair with CS2R.64)";
    GlobalTimerHi "SR_GLOBALTIMERHI" "nanoseconds, high word";
    GridIdLo "SR_GRIDIDLO" "identifier of the launch, low word (a pair with CS2R.64)";
    GridIdHi "SR_GRIDIDHI" "identifier of the launch, high word";
    ClusterIdX "SR_CLUSTERID.X" "cluster in the grid, x";
    ClusterIdY "SR_CLUSTERID.Y" "cluster in the grid, y";
    ClusterIdZ "SR_CLUSTERID.Z" "cluster in the grid, z";
    NClusterIdX "SR_NCLUSTERID.X" "clusters of the grid, x";
    NClusterIdY "SR_NCLUSTERID.Y" "clusters of the grid, y";
    NClusterIdZ "SR_NCLUSTERID.Z" "clusters of the grid, z";
    ClusterCtaidX "SR_CLUSTER_CTAID.X" "CTA in its cluster, x";
    ClusterCtaidY "SR_CLUSTER_CTAID.Y" "CTA in its cluster, y";
    ClusterCtaidZ "SR_CLUSTER_CTAID.Z" "CTA in its cluster, z";
    ClusterNctaidX "SR_CLUSTER_NCTAID.X" "CTAs of a cluster, x";
    ClusterNctaidY "SR_CLUSTER_NCTAID.Y" "CTAs of a cluster, y";
    ClusterNctaidZ "SR_CLUSTER_NCTAID.Z" "CTAs of a cluster, z";
    ClusterCtaRank "SR_CLUSTER_CTARANK" "CTA in its cluster, flat";
    ClusterNctaRank "SR_CLUSTER_NCTARANK" "CTAs of a cluster, flat";
    IsExplicitCluster "SR_EXPLICIT_CLUSTER" "1 where the launch named a cluster size";
    TotalSmem "SR_TOTAL_SMEM" "shared bytes of the CTA, static and dynamic";
    DynamicSmem "SR_DYNAMIC_SMEM" "dynamic shared bytes of the CTA";
    AggrSmem "SR_AGGR_SMEM" "shared bytes of the CTA, the system's own included";
    Pm0 "SR_PM0" "performance counter 0";
    Pm1 "SR_PM1" "performance counter 1";
    Pm2 "SR_PM2" "performance counter 2";
    Pm3 "SR_PM3" "performance counter 3";
    Pm4 "SR_PM4" "performance counter 4";
    Pm5 "SR_PM5" "performance counter 5";
    Pm6 "SR_PM6" "performance counter 6";
    Pm7 "SR_PM7" "performance counter 7";
    Zero "SRZ" "zero";
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_zero() { write!(f, "RZ") } else { write!(f, "R{}", self.0) }
    }
}

impl fmt::Display for UReg {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if *self == UReg::URZ { write!(f, "URZ") } else { write!(f, "UR{}", self.0) }
    }
}

impl fmt::Display for Pred {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if *self == Pred::PT { write!(f, "PT") } else { write!(f, "P{}", self.0) }
    }
}

impl fmt::Display for PredUse {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", if self.neg { "!" } else { "" }, self.pred)
    }
}

impl fmt::Display for BReg {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "B{}", self.0)
    }
}
