//! Special registers by name.

use ir::SReg;

fn axis(member: &str) -> Option<u8> {
    match member {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    }
}

/// `%tid.x` and the like.
pub(super) fn member(base: &str, member: &str) -> Option<SReg> {
    let n = axis(member)?;
    Some(match base {
        "%tid" => SReg::Tid(n),
        "%ntid" => SReg::Ntid(n),
        "%ctaid" => SReg::Ctaid(n),
        "%nctaid" => SReg::Nctaid(n),
        "%clusterid" => SReg::ClusterId(n),
        "%nclusterid" => SReg::NClusterId(n),
        "%cluster_ctaid" => SReg::ClusterCtaid(n),
        "%cluster_nctaid" => SReg::ClusterNctaid(n),
        _ => return None,
    })
}

/// Special registers with one value.
pub(super) fn scalar(name: &str) -> Option<SReg> {
    Some(match name.strip_prefix('%')? {
        "laneid" => SReg::LaneId,
        "warpid" => SReg::WarpId,
        "nwarpid" => SReg::NWarpId,
        "smid" => SReg::SmId,
        "nsmid" => SReg::NSmId,
        "gridid" => SReg::GridId,
        "cluster_ctarank" => SReg::ClusterCtaRank,
        "cluster_nctarank" => SReg::ClusterNctaRank,
        "is_explicit_cluster" => SReg::IsExplicitCluster,
        "lanemask_eq" => SReg::LaneMaskEq,
        "lanemask_le" => SReg::LaneMaskLe,
        "lanemask_lt" => SReg::LaneMaskLt,
        "lanemask_ge" => SReg::LaneMaskGe,
        "lanemask_gt" => SReg::LaneMaskGt,
        "clock" => SReg::Clock,
        "clock_hi" => SReg::ClockHi,
        "clock64" => SReg::Clock64,
        "globaltimer" => SReg::GlobalTimer,
        "globaltimer_lo" => SReg::GlobalTimerLo,
        "globaltimer_hi" => SReg::GlobalTimerHi,
        "total_smem_size" => SReg::TotalSmemSize,
        "dynamic_smem_size" => SReg::DynamicSmemSize,
        "aggr_smem_size" => SReg::AggrSmemSize,
        "reserved_smem_offset_begin"
        | "reserved_smem_offset_end"
        | "reserved_smem_offset_cap"
        | "reserved_smem_offset_0"
        | "reserved_smem_offset_1" => SReg::ReservedSmemOffset,
        word => return numbered(word),
    })
}

fn numbered(word: &str) -> Option<SReg> {
    if let Some(n) = word.strip_prefix("envreg") {
        return n.parse().ok().filter(|&n: &u8| n < 32).map(SReg::EnvReg);
    }
    let digits = word.strip_prefix("pm")?;
    match digits.strip_suffix("_64") {
        Some(n) => n.parse().ok().filter(|&n: &u8| n < 8).map(SReg::Pm64),
        None => digits.parse().ok().filter(|&n: &u8| n < 8).map(SReg::Pm),
    }
}
