//! Scoped tables of names. A block opens a scope; a name is looked up from the innermost scope outwards.

use crate::ast::{Declarator, Function, Statement, Variable};
use crate::span::Span;
use std::collections::HashMap;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub enum Symbol<'t, 'a> {
    /// A register, a parameter or a variable.
    Variable(&'t Variable<'a>, &'t Declarator<'a>),
    Function(&'t Function<'a>),
    /// A second name of a function.
    Alias(&'t str),
    /// A place to branch to.
    Label,
    /// The label of `.branchtargets`, `.calltargets` or `.callprototype`.
    Targets(&'t Statement<'a>),
}

#[derive(Clone, Copy, Debug)]
pub struct Entry<'t, 'a> {
    pub span: Span,
    pub symbol: Symbol<'t, 'a>,
}

#[derive(Debug, Default)]
struct Scope<'t, 'a> {
    names: HashMap<&'t str, Entry<'t, 'a>>,
    /// `%r<10>` under its prefix `%r`.
    ranges: HashMap<&'t str, Entry<'t, 'a>>,
}

#[derive(Debug)]
pub struct Scopes<'t, 'a> {
    stack: Vec<Scope<'t, 'a>>,
}

impl Default for Scopes<'_, '_> {
    fn default() -> Self {
        Scopes { stack: vec![Scope::default()] }
    }
}

impl<'t, 'a> Scopes<'t, 'a> {
    pub fn open(&mut self) {
        self.stack.push(Scope::default());
    }

    /// Closes the innermost scope. The outermost one stays.
    pub fn close(&mut self) {
        if self.stack.len() > 1 {
            self.stack.pop();
        }
    }

    /// No function's scope is open.
    pub fn is_outermost(&self) -> bool {
        self.stack.len() == 1
    }

    /// Declares a name in the innermost scope; the answer is the entry that was there before, which stays.
    pub fn declare(&mut self, name: &'t str, entry: Entry<'t, 'a>) -> Option<Entry<'t, 'a>> {
        let scope = self.stack.last_mut()?;
        match scope.names.entry(name) {
            std::collections::hash_map::Entry::Occupied(found) => Some(*found.get()),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(entry);
                None
            }
        }
    }

    /// Puts an entry in place of the one the innermost scope has.
    pub fn replace(&mut self, name: &'t str, entry: Entry<'t, 'a>) {
        if let Some(scope) = self.stack.last_mut() {
            scope.names.insert(name, entry);
        }
    }

    /// Declares what a declarator names, ranges included.
    pub fn declare_variable(
        &mut self,
        variable: &'t Variable<'a>,
        declarator: &'t Declarator<'a>,
    ) -> Option<Entry<'t, 'a>> {
        let entry = Entry { span: declarator.name.span, symbol: Symbol::Variable(variable, declarator) };
        if declarator.range.is_none() {
            return self.declare(declarator.name.text, entry);
        }
        self.stack.last_mut()?.ranges.insert(declarator.name.text, entry)
    }

    pub fn lookup(&self, name: &str) -> Option<Entry<'t, 'a>> {
        self.stack.iter().rev().find_map(|scope| scope.find(name))
    }

    /// Names that can be looked up, for suggestions. Ranges give their prefix only.
    pub fn visible(&self) -> impl Iterator<Item = &'t str> {
        self.stack.iter().rev().flat_map(|scope| scope.names.keys().copied())
    }
}

impl<'t, 'a> Scope<'t, 'a> {
    fn find(&self, name: &str) -> Option<Entry<'t, 'a>> {
        if let Some(entry) = self.names.get(name) {
            return Some(*entry);
        }
        if self.ranges.is_empty() {
            return None;
        }
        // `%r12` may belong to `%r<20>` or to `%r1<5>`: try every way to split off a number.
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).take(10).count();
        (1..=digits).rev().find_map(|count| {
            let (prefix, number) = name.split_at(name.len() - count);
            if count > 1 && number.starts_with('0') {
                return None;
            }
            let number: u32 = number.parse().ok()?;
            let entry = self.ranges.get(prefix)?;
            match entry.symbol {
                Symbol::Variable(_, declarator) if declarator.range.is_some_and(|n| number < n) => {
                    Some(*entry)
                }
                _ => None,
            }
        })
    }
}
