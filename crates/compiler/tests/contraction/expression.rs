//! Expressions over the inputs of a probe, in a form that can be compared: operands of sums and products sorted, signs in
//! front of products.

use std::fmt::{self, Display, Formatter};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Expression {
    Name(String),
    Sum(Vec<Expression>),
    Product(Vec<Expression>),
    /// Two factors, sorted, and the addend.
    Fused(Vec<Expression>, Box<Expression>),
    Magnitude(Box<Expression>),
    Negated(Box<Expression>),
}

use Expression::*;

pub fn negated(x: Expression) -> Expression {
    match x {
        Negated(inner) => *inner,
        other => Negated(Box::new(other)),
    }
}

pub fn sum(a: Expression, b: Expression) -> Expression {
    let mut both = vec![a, b];
    both.sort();
    Sum(both)
}

/// Factors sorted without their signs, and whether the product is negative.
fn factors(a: Expression, b: Expression) -> (Vec<Expression>, bool) {
    let mut is_negative = false;
    let mut both: Vec<Expression> = [a, b]
        .into_iter()
        .map(|x| match x {
            Negated(inner) => {
                is_negative = !is_negative;
                *inner
            }
            other => other,
        })
        .collect();
    both.sort();
    (both, is_negative)
}

pub fn product(a: Expression, b: Expression) -> Expression {
    let (both, is_negative) = factors(a, b);
    if is_negative { negated(Product(both)) } else { Product(both) }
}

pub fn fused(a: Expression, b: Expression, c: Expression) -> Expression {
    // Adding -0 changes nothing.
    if c == Name("-0".into()) || c == negated(Name("0".into())) {
        return product(a, b);
    }
    let (mut both, is_negative) = factors(a, b);
    if is_negative {
        both[0] = negated(both[0].clone());
    }
    Fused(both, Box::new(c))
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Name(n) => write!(f, "{n}"),
            Sum(x) => write!(f, "({} + {})", x[0], x[1]),
            Product(x) => write!(f, "({} * {})", x[0], x[1]),
            Fused(x, c) => write!(f, "fma({},{},{c})", x[0], x[1]),
            Magnitude(x) => write!(f, "abs({x})"),
            Negated(x) => write!(f, "-{x}"),
        }
    }
}

/// Reads what the probes write: `fma(a,b,c)`, `(a + b)`, `(a * b)`, `abs(a)`, `-a`, names and numbers.
pub fn parse(text: &str) -> Expression {
    let mut rest = text;
    let parsed = expression(&mut rest);
    assert!(rest.is_empty(), "{rest:?} is left of {text:?}");
    parsed
}

fn expression(rest: &mut &str) -> Expression {
    if eat(rest, "-") {
        return negated(expression(rest));
    }
    if eat(rest, "fma(") {
        let a = expression(rest);
        expect(rest, ",");
        let b = expression(rest);
        expect(rest, ",");
        let c = expression(rest);
        expect(rest, ")");
        return fused(a, b, c);
    }
    if eat(rest, "abs(") {
        let a = expression(rest);
        expect(rest, ")");
        return Magnitude(Box::new(a));
    }
    if eat(rest, "(") {
        let a = expression(rest);
        let is_sum = eat(rest, " + ");
        if !is_sum {
            expect(rest, " * ");
        }
        let b = expression(rest);
        expect(rest, ")");
        return if is_sum { sum(a, b) } else { product(a, b) };
    }
    let end = rest.find([',', ')', ' ']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    *rest = after;
    Name(name.into())
}

fn eat(rest: &mut &str, what: &str) -> bool {
    match rest.strip_prefix(what) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

fn expect(rest: &mut &str, what: &str) {
    assert!(eat(rest, what), "expected {what:?} at {rest:?}");
}
