//! The special registers.

use crate::types::ScalarType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialRegister {
    pub ty: ScalarType,
    /// Has the components `.x`, `.y`, `.z`, `.w`.
    pub vector: bool,
}

const fn scalar(ty: ScalarType) -> Option<SpecialRegister> {
    Some(SpecialRegister { ty, vector: false })
}

const fn vector() -> Option<SpecialRegister> {
    Some(SpecialRegister { ty: ScalarType::U32, vector: true })
}

/// The special register of this name, `%` included.
pub fn special_register(name: &str) -> Option<SpecialRegister> {
    let word = name.strip_prefix('%')?;
    match word {
        "tid" | "ntid" | "ctaid" | "nctaid" | "clusterid" | "nclusterid" | "cluster_ctaid"
        | "cluster_nctaid" => vector(),
        "laneid"
        | "warpid"
        | "nwarpid"
        | "smid"
        | "nsmid"
        | "cluster_ctarank"
        | "cluster_nctarank"
        | "lanemask_eq"
        | "lanemask_le"
        | "lanemask_lt"
        | "lanemask_ge"
        | "lanemask_gt"
        | "clock"
        | "clock_hi"
        | "globaltimer_lo"
        | "globaltimer_hi"
        | "total_smem_size"
        | "dynamic_smem_size"
        | "aggr_smem_size"
        | "reserved_smem_offset_begin"
        | "reserved_smem_offset_end"
        | "reserved_smem_offset_cap" => scalar(ScalarType::U32),
        "clock64" | "globaltimer" | "gridid" | "current_graph_exec" => scalar(ScalarType::U64),
        "is_explicit_cluster" => scalar(ScalarType::Pred),
        _ => numbered(word),
    }
}

/// `%pm0` to `%pm7`, `%pm0_64`, `%envreg0` to `%envreg31`, `%reserved_smem_offset_0`.
fn numbered(word: &str) -> Option<SpecialRegister> {
    let below = |digits: &str, limit: u32| {
        !(digits.len() > 1 && digits.starts_with('0')) && digits.parse::<u32>().is_ok_and(|n| n < limit)
    };
    if let Some(digits) = word.strip_prefix("envreg") {
        return if below(digits, 32) { scalar(ScalarType::B32) } else { None };
    }
    if let Some(digits) = word.strip_prefix("reserved_smem_offset_") {
        return if below(digits, 2) { scalar(ScalarType::B32) } else { None };
    }
    let digits = word.strip_prefix("pm")?;
    match digits.strip_suffix("_64") {
        Some(digits) if below(digits, 8) => scalar(ScalarType::U64),
        None if below(digits, 8) => scalar(ScalarType::U32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_numbered_ones() {
        assert_eq!(special_register("%pm7"), scalar(ScalarType::U32));
        assert_eq!(special_register("%pm3_64"), scalar(ScalarType::U64));
        assert_eq!(special_register("%pm8"), None);
        assert_eq!(special_register("%envreg31"), scalar(ScalarType::B32));
        assert_eq!(special_register("%envreg32"), None);
        assert_eq!(special_register("tid"), None);
    }
}
