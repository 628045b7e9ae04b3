// SPDX-License-Identifier: GPL-2.0

//! Finds what is unsafe in Rust files, and the C that it calls.
//!
//! Prints a line for each use of the word `unsafe`, fields separated by tabs:
//!
//! | field | what |
//! | --- | --- |
//! | file | as it was given |
//! | line | where the word stands |
//! | start | where the statement or the item begins that it is in, with its attributes |
//! | kind | `block`, `impl`, `fn`, `method` (of another's trait), `trait`; or what is refused below |
//! | owner | the function, or the type, that it belongs to |
//! | caller | `safe` or `unsafe`: what the function asks of its caller |
//! | calls | C functions that are called, separated by commas |
//! | names | other names of C |
//!
//! Refused are `unread`, a word that stands where this program cannot tell what it means (as in a
//! macro of another form than a call), and `import`, names of C that would not be seen.

use proc_macro2::{
    LineColumn,
    Span,
    TokenStream,
    TokenTree, //
};
use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fs,
    process::ExitCode, //
};
use syn::{
    punctuated::Punctuated,
    spanned::Spanned,
    visit::{
        self,
        Visit, //
    },
    Expr,
    ExprCall,
    ExprPath,
    ExprUnsafe,
    ImplItemFn,
    Item,
    ItemFn,
    ItemImpl,
    ItemTrait,
    Macro,
    Path,
    Signature,
    Stmt,
    Token,
    TraitItemFn,
    Type,
    TypeBareFn,
    UsePath,
    UseRename, //
};

/// One use of the word.
struct Found {
    line: usize,
    start: usize,
    kind: &'static str,
    owner: String,
    is_safe: bool,
    calls: Vec<String>,
    names: Vec<String>,
}

/// What surrounds the code at hand.
#[derive(Clone, Default)]
struct Place {
    /// The type or the trait whose items these are.
    of: Option<String>,
    /// Whether it is an `impl` of a trait, whose methods have their contract there.
    of_trait: bool,
    function: Option<String>,
    in_unsafe_fn: bool,
    /// Where the statement or the item begins.
    start: usize,
    /// The unsafe block, as an index of `found`.
    block: Option<usize>,
}

#[derive(Default)]
struct Audit {
    /// Words that no visit has come upon yet.
    words: BTreeMap<(usize, usize), Span>,
    found: Vec<Found>,
    place: Place,
}

fn key(at: LineColumn) -> (usize, usize) {
    (at.line, at.column)
}

/// The words `unsafe` in `tokens`, in macros as well.
fn words(tokens: TokenStream, into: &mut BTreeMap<(usize, usize), Span>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) if word == "unsafe" => {
                into.insert(key(word.span().start()), word.span());
            }
            TokenTree::Group(group) => words(group.stream(), into),
            _ => {}
        }
    }
}

/// The name of C that a path stands for.
fn c_name(path: &Path) -> Option<String> {
    let mut segments = path.segments.iter().rev();
    let name = segments.next()?;
    (segments.next()?.ident == "bindings").then(|| name.ident.to_string())
}

fn last_segment(path: &Path) -> String {
    path.segments
        .last()
        .map_or_else(String::new, |segment| segment.ident.to_string())
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => last_segment(&path.path),
        _ => "?".into(),
    }
}

impl Audit {
    /// Notes a use of the word, with nothing in it yet.
    fn note(&mut self, word: Span, kind: &'static str, owner: String) {
        self.words.remove(&key(word.start()));
        self.found.push(Found {
            line: word.start().line,
            start: self.place.start,
            kind,
            owner,
            is_safe: !self.place.in_unsafe_fn,
            calls: Vec::new(),
            names: Vec::new(),
        });
    }

    /// Goes on in another place, and comes back.
    fn within(&mut self, place: Place, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.place, place);
        visit(self);
        self.place = outer;
    }

    fn owner(&self, name: Option<&str>) -> String {
        let names: Vec<&str> = self.place.of.as_deref().into_iter().chain(name).collect();
        names.join("::")
    }

    /// A function, whose body has its own statements and blocks.
    fn function(&mut self, start: Span, sig: &Signature, visit: impl FnOnce(&mut Self)) {
        let name = self.owner(Some(&sig.ident.to_string()));
        let place = Place {
            function: Some(name.clone()),
            in_unsafe_fn: sig.unsafety.is_some(),
            start: start.start().line,
            block: None,
            ..self.place.clone()
        };
        let kind = if self.place.of_trait { "method" } else { "fn" };
        self.within(place, |this| {
            if let Some(word) = &sig.unsafety {
                this.note(word.span, kind, name);
            }
            visit(this);
        });
    }
}

impl<'ast> Visit<'ast> for Audit {
    fn visit_item(&mut self, item: &'ast Item) {
        let place = Place {
            start: item.span().start().line,
            ..self.place.clone()
        };
        self.within(place, |this| visit::visit_item(this, item));
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        let place = Place {
            start: stmt.span().start().line,
            ..self.place.clone()
        };
        self.within(place, |this| visit::visit_stmt(this, stmt));
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        // One that stands in a method is none itself.
        let place = Place {
            of: None,
            of_trait: false,
            ..self.place.clone()
        };
        self.within(place, |this| {
            this.function(item.span(), &item.sig, |this| {
                visit::visit_item_fn(this, item)
            });
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(item.span(), &item.sig, |this| {
            visit::visit_impl_item_fn(this, item)
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.function(item.span(), &item.sig, |this| {
            visit::visit_trait_item_fn(this, item)
        });
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let of = type_name(&item.self_ty);
        let of_trait = item.trait_.as_ref().map(|(_, path, _)| last_segment(path));
        if let (Some(word), Some(name)) = (&item.unsafety, &of_trait) {
            self.note(word.span, "impl", format!("{name} for {of}"));
        }
        let place = Place {
            of: Some(of),
            of_trait: of_trait.is_some(),
            ..self.place.clone()
        };
        self.within(place, |this| visit::visit_item_impl(this, item));
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        let name = item.ident.to_string();
        if let Some(word) = &item.unsafety {
            self.note(word.span, "trait", name.clone());
        }
        let place = Place {
            of: Some(name),
            of_trait: false,
            ..self.place.clone()
        };
        self.within(place, |this| visit::visit_item_trait(this, item));
    }

    /// The type of a pointer asks for nothing; its call does, in a block.
    fn visit_type_bare_fn(&mut self, ty: &'ast TypeBareFn) {
        if let Some(word) = &ty.unsafety {
            self.words.remove(&key(word.span.start()));
        }
        visit::visit_type_bare_fn(self, ty);
    }

    fn visit_expr_unsafe(&mut self, expr: &'ast ExprUnsafe) {
        let owner = match &self.place.function {
            Some(name) => name.clone(),
            None => self.owner(None),
        };
        self.note(expr.unsafe_token.span, "block", owner);
        let place = Place {
            block: Some(self.found.len() - 1),
            ..self.place.clone()
        };
        self.within(place, |this| visit::visit_expr_unsafe(this, expr));
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let name = match &*call.func {
            Expr::Path(function) => c_name(&function.path),
            _ => None,
        };
        let Some(name) = name else {
            return visit::visit_expr_call(self, call);
        };
        if let Some(block) = self.place.block {
            self.found[block].calls.push(name);
        }
        for argument in &call.args {
            self.visit_expr(argument);
        }
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if let (Some(block), Some(name)) = (self.place.block, c_name(&path.path)) {
            self.found[block].names.push(name);
        }
        visit::visit_expr_path(self, path);
    }

    /// Most macros are called like functions; what stands in others is left unread.
    fn visit_macro(&mut self, mac: &'ast Macro) {
        let parse = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(arguments) = mac.parse_body_with(parse) {
            for argument in &arguments {
                Visit::visit_expr(self, argument);
            }
        }
    }

    fn visit_use_path(&mut self, path: &'ast UsePath) {
        if path.ident == "bindings" {
            self.note(path.ident.span(), "import", String::new());
        }
        visit::visit_use_path(self, path);
    }

    fn visit_use_rename(&mut self, rename: &'ast UseRename) {
        if rename.ident == "bindings" {
            self.note(rename.ident.span(), "import", String::new());
        }
    }
}

fn audit(text: &str) -> syn::Result<Vec<Found>> {
    let mut audit = Audit::default();
    words(text.parse()?, &mut audit.words);
    audit.visit_file(&syn::parse_file(text)?);
    for word in std::mem::take(&mut audit.words).into_values() {
        audit.note(word, "unread", String::new());
    }
    Ok(audit.found)
}

fn print(file: &str) -> Result<(), Box<dyn Error>> {
    for found in audit(&fs::read_to_string(file)?)? {
        println!(
            "{file}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            found.line,
            found.start,
            found.kind,
            found.owner,
            if found.is_safe { "safe" } else { "unsafe" },
            found.calls.join(","),
            found.names.join(",")
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    for file in env::args().skip(1) {
        if let Err(error) = print(&file) {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
