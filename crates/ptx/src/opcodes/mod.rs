//! Which instructions exist, with which modifiers and how many operands: the table and its checker.

mod table;

pub use table::{FORMS, Form, Slot};

use crate::ast::{Instruction, Name};
use crate::diagnostic::{Diagnostic, Diagnostics, closest};
use crate::types::ScalarType;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The forms of each mnemonic.
static BY_MNEMONIC: LazyLock<HashMap<&str, Vec<&Form>>> = LazyLock::new(|| {
    let mut map: HashMap<&str, Vec<&Form>> = HashMap::new();
    for form in FORMS {
        let mnemonic = form.name.split('.').next().unwrap_or(form.name);
        map.entry(mnemonic).or_default().push(form);
    }
    map
});

/// Modifiers that `name` itself holds, when the instruction begins with them.
fn matched_words(form: &Form, modifiers: &[Name<'_>]) -> Option<usize> {
    let mut count = 0;
    for word in form.name.split('.').skip(1) {
        if modifiers.get(count)?.text != word {
            return None;
        }
        count += 1;
    }
    Some(count)
}

impl Slot {
    fn takes(&self, word: &str) -> bool {
        self.words.contains(&word) || (self.shape && is_shape(word))
    }

    fn is_type(&self) -> bool {
        self.words.first().is_some_and(|word| ScalarType::from_word(word).is_some())
    }
}

/// `m8n8`, `m16n8k16`
fn is_shape(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some((m, rest)) = word.strip_prefix('m').and_then(|rest| rest.split_once('n')) else { return false };
    let (n, k) = rest.split_once('k').unwrap_or((rest, "1"));
    number(m) && number(n) && number(k)
}

/// How an instruction differs from a form.
#[derive(Debug, Default)]
struct Misfit<'i, 'a> {
    foreign: Vec<&'i Name<'a>>,
    /// With the modifier that already has the place.
    doubled: Vec<(&'i Name<'a>, &'i Name<'a>)>,
    missing: Vec<&'static Slot>,
    wrong_count: bool,
}

impl Misfit<'_, '_> {
    fn size(&self) -> usize {
        8 * (self.foreign.len() + self.doubled.len()) + 3 * self.missing.len() + usize::from(self.wrong_count)
    }
}

fn compare<'i, 'a>(form: &Form, named: usize, instruction: &'i Instruction<'a>) -> Misfit<'i, 'a> {
    let mut misfit = Misfit::default();
    let mut taken: [Option<&Name<'a>>; 16] = [None; 16];
    for modifier in &instruction.modifiers[named..] {
        let mut rival = None;
        let mut placed = false;
        for (slot, place) in form.slots.iter().zip(&mut taken) {
            if !slot.takes(modifier.text) {
                continue;
            }
            match place {
                None => {
                    *place = Some(modifier);
                    placed = true;
                    break;
                }
                Some(other) => rival = Some(*other),
            }
        }
        match (placed, rival) {
            (true, _) => {}
            (false, Some(other)) => misfit.doubled.push((modifier, other)),
            (false, None) => misfit.foreign.push(modifier),
        }
    }
    misfit
        .missing
        .extend(form.slots.iter().zip(&taken).filter(|(s, t)| s.required && t.is_none()).map(|(s, _)| s));
    let count = instruction.operands.len();
    misfit.wrong_count = count < usize::from(form.operands.0) || count > usize::from(form.operands.1);
    misfit
}

/// Checks one instruction; the answer is its form when it has one.
pub fn check(instruction: &Instruction<'_>, diagnostics: &mut Diagnostics) -> Option<&'static Form> {
    let Some(forms) = BY_MNEMONIC.get(instruction.mnemonic.text) else {
        unknown(instruction, diagnostics);
        return None;
    };
    // The most specific names win: `cp.async.bulk` before `cp.async`.
    let mut best: Option<(usize, &'static Form, Misfit<'_, '_>)> = None;
    for &form in forms {
        let Some(named) = matched_words(form, &instruction.modifiers) else { continue };
        let misfit = compare(form, named, instruction);
        let better = match &best {
            None => true,
            Some((words, _, other)) => named > *words || (named == *words && misfit.size() < other.size()),
        };
        if better {
            best = Some((named, form, misfit));
        }
    }
    let Some((named, form, misfit)) = best else {
        unknown(instruction, diagnostics);
        return None;
    };
    if misfit.size() == 0 {
        return Some(form);
    }
    report(instruction, named, form, &misfit, forms, diagnostics);
    None
}

fn unknown(instruction: &Instruction<'_>, diagnostics: &mut Diagnostics) {
    let mnemonic = instruction.mnemonic.text;
    if let Some(forms) = BY_MNEMONIC.get(mnemonic) {
        // The mnemonic exists but the word that selects the form does not.
        let second = instruction.modifiers.first();
        let span = second.map_or(instruction.mnemonic.span, |word| word.span);
        let mut words: Vec<&str> = forms.iter().filter_map(|f| f.name.split('.').nth(1)).collect();
        words.sort_unstable();
        words.dedup();
        let message = match second {
            Some(word) => format!("unknown opcode `{mnemonic}.{}`", crate::parse::shorten(word.text)),
            None => format!("unknown opcode `{mnemonic}`"),
        };
        let list: Vec<String> = words.iter().map(|word| format!("`{mnemonic}.{word}`")).collect();
        let help = match second.and_then(|word| closest(word.text, words.iter().copied())) {
            Some(close) => format!("did you mean `{mnemonic}.{close}`?"),
            None => format!("there is {}", list.join(", ")),
        };
        diagnostics.push(Diagnostic::error(span, message).with_help(help));
        return;
    }
    let message = format!("unknown opcode `{}`", crate::parse::shorten(mnemonic));
    let mut diagnostic = Diagnostic::error(instruction.mnemonic.span, message);
    let mut names: Vec<&str> = BY_MNEMONIC.keys().copied().collect();
    names.sort_unstable();
    if let Some(close) = closest(mnemonic, names) {
        diagnostic = diagnostic.with_help(format!("did you mean `{close}`?"));
    }
    diagnostics.push(diagnostic);
}

fn report(
    instruction: &Instruction<'_>,
    named: usize,
    form: &Form,
    misfit: &Misfit<'_, '_>,
    forms: &[&Form],
    diagnostics: &mut Diagnostics,
) {
    let known = |word: &str| forms.iter().any(|f| f.slots.iter().any(|slot| slot.takes(word)));
    for modifier in &misfit.foreign {
        // With the type in the name where another type would take the modifier.
        let ty = instruction.modifiers[named..].iter().find(|m| {
            known(modifier.text) && ScalarType::from_word(m.text).is_some() && m.text != modifier.text
        });
        let subject = match ty {
            Some(ty) => format!("{}.{}", form.name, ty.text),
            None => form.name.to_string(),
        };
        let message =
            format!("modifier `.{}` does not apply to `{subject}`", crate::parse::shorten(modifier.text));
        let mut diagnostic = Diagnostic::error(modifier.span, message);
        let words = form.slots.iter().flat_map(|slot| slot.words.iter().copied());
        if let Some(close) = closest(modifier.text, words).filter(|_| !known(modifier.text)) {
            diagnostic = diagnostic.with_help(format!("did you mean `.{close}`?"));
        }
        diagnostics.push(diagnostic);
    }
    for (modifier, other) in &misfit.doubled {
        let message = if modifier.text == other.text {
            format!("modifier `.{}` is given twice", modifier.text)
        } else {
            format!("modifier `.{}` does not go with `.{}`", modifier.text, other.text)
        };
        diagnostics.error(modifier.span, message);
    }
    // What a foreign modifier stood for is probably what is missing.
    if misfit.foreign.is_empty() {
        for slot in &misfit.missing {
            let message = match slot {
                Slot { shape: true, .. } => format!("`{}` needs a matrix shape, e.g. `.m16n8k16`", form.name),
                Slot { words: [only], .. } => format!("`{}` needs the modifier `.{only}`", form.name),
                slot if slot.is_type() => {
                    format!("`{}` needs a type, e.g. {}", form.name, list(&slot.words[..1]))
                }
                slot => format!("`{}` needs one of {}", form.name, list(slot.words)),
            };
            diagnostics.error(instruction.opcode_span(), message);
        }
    }
    if misfit.wrong_count {
        wrong_count(instruction, form, diagnostics);
    }
}

fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`.{word}`")).collect::<Vec<_>>().join(", ")
}

fn wrong_count(instruction: &Instruction<'_>, form: &Form, diagnostics: &mut Diagnostics) {
    let count = instruction.operands.len();
    let takes = match form.operands {
        (0, 0) => "none".to_string(),
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low} to {high}"),
    };
    let message = format!("wrong number of operands: `{}` takes {takes}, found {count}", form.name);
    // The first operand too many, or the opcode that has too few.
    let span = match instruction.operands.get(usize::from(form.operands.1)) {
        Some(extra) => extra.span,
        None => instruction.opcode_span(),
    };
    diagnostics.error(span, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_has_more_slots_than_the_checker_has_places() {
        assert!(FORMS.iter().all(|form| form.slots.len() <= 16));
    }

    #[test]
    fn letters_of_the_table_are_known() {
        for form in FORMS {
            assert!(form.types.bytes().all(|b| b"tuwlmijp.".contains(&b)), "{}", form.name);
            assert!(form.types.len() <= usize::from(form.operands.1), "{}", form.name);
        }
    }

    #[test]
    fn shapes() {
        assert!(is_shape("m16n8k16") && is_shape("m8n8"));
        assert!(!is_shape("m16") && !is_shape("mn8k4") && !is_shape("row"));
    }
}
