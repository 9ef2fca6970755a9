//! Traces: what each stage of a search was asked, what it returned and how long it took.
//!
//! A stage is a [`tracing`] span of level INFO or above; its fields are the stage's data. Nothing has to be
//! passed around: [`capture`] collects the spans that its closure opens on the same thread, so a foreign
//! engine that already uses `tracing` is traced without a change.
//!
//! Four field names carry meaning: `skipped` (why the stage did not run), `needless` (true beside `skipped` when the
//! stage was ready to run and saw that there was nothing for it to do), `model` (the fingerprint of the model that ran)
//! and `error`.

use std::cell::RefCell;
use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Level, Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// One stage: a span that was opened and closed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// The span's name: `bm25`, `vector`, `fusion`, `rerank` …
    pub name: String,
    /// How many stages enclose this one.
    pub depth: u32,
    /// Milliseconds from the start of the capture.
    pub start_ms: f64,
    /// Milliseconds from open to close.
    pub took_ms: f64,
    /// What the stage was asked and what it returned.
    pub fields: Map<String, Value>,
}

impl Stage {
    /// Whether the stage did its work: neither skipped nor failed.
    pub fn ran(&self) -> bool {
        !self.fields.contains_key("skipped") && !self.fields.contains_key("error")
    }

    /// Whether the stage can be relied on: it ran, or it could have and saw that there was nothing to do.
    pub fn sound(&self) -> bool {
        let needless = self.fields.get("needless").and_then(Value::as_bool).unwrap_or(false);
        self.ran() || (needless && !self.fields.contains_key("error"))
    }

    /// The fingerprint of the model that ran in this stage.
    pub fn model(&self) -> Option<&str> {
        self.fields.get("model").and_then(Value::as_str)
    }
}

/// The stages of one execution, in the order in which they were opened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Trace {
    /// The stages.
    pub stages: Vec<Stage>,
}

impl Trace {
    /// The first stage called `name`, whether it ran or not.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// Whether some stage called `name` ran.
    pub fn ran(&self, name: &str) -> bool {
        self.stages.iter().any(|stage| stage.name == name && stage.ran())
    }

    /// Whether some stage called `name` is [sound](Stage::sound).
    pub fn sound(&self, name: &str) -> bool {
        self.stages.iter().any(|stage| stage.name == name && stage.sound())
    }
}

/// Runs `work` and returns its value with the stages it went through on this thread.
///
/// Captures nest: stages of an inner capture also appear in the outer one. While `work` runs, spans go to
/// the collector and not to a subscriber that the program may have set.
///
/// ```
/// let (sum, trace) = rankgate::trace::capture(|| {
///     let _stage = tracing::info_span!("adding", terms = 2).entered();
///     1 + 1
/// });
/// assert_eq!(sum, 2);
/// assert!(trace.ran("adding"));
/// assert_eq!(trace.stages[0].fields["terms"], 2);
/// ```
pub fn capture<T>(work: impl FnOnce() -> T) -> (T, Trace) {
    // While a process has a single dispatch, `tracing` asks the current thread's alone whether a new span is
    // wanted, and remembers the answer for good: a span first opened outside of any capture would never be
    // collected. A second dispatch, which wants nothing, makes it ask all.
    static DISPATCHES: OnceLock<[Dispatch; 2]> = OnceLock::new();
    let [dispatch, _] = DISPATCHES.get_or_init(|| {
        [Dispatch::new(Registry::default().with(Collector)), Dispatch::new(NoSubscriber::default())]
    });

    /// Takes the buffer off the stack again even when `work` panics.
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            BUFFERS.with_borrow_mut(|buffers| buffers.pop());
        }
    }

    BUFFERS.with_borrow_mut(|buffers| buffers.push(Buffer { started: Instant::now(), stages: Vec::new() }));
    let pop = Pop;
    let value = tracing::dispatcher::with_default(dispatch, work);
    let stages = BUFFERS.with_borrow_mut(|buffers| {
        let Some(inner) =
            buffers.last_mut().map(|buffer| (buffer.started, std::mem::take(&mut buffer.stages)))
        else {
            return Vec::new();
        };
        let (started, stages) = inner;
        if let [.., outer, _] = buffers.as_mut_slice() {
            let shift = started.duration_since(outer.started).as_secs_f64() * 1e3;
            outer.stages.extend(stages.iter().cloned().map(|mut stage| {
                stage.start_ms += shift;
                stage
            }));
        }
        stages
    });
    drop(pop);
    (value, Trace { stages })
}

struct Buffer {
    started: Instant,
    stages: Vec<Stage>,
}

thread_local! {
    static BUFFERS: RefCell<Vec<Buffer>> = const { RefCell::new(Vec::new()) };
}

/// Where a span's stage lies in the buffer that was current when it was opened.
struct Slot {
    level: usize,
    index: usize,
    opened: Instant,
}

struct Collector;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.is_span() && *metadata.level() <= Level::INFO
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields(Map::new());
        attributes.record(&mut fields);
        BUFFERS.with_borrow_mut(|buffers| {
            let level = buffers.len();
            let Some(buffer) = buffers.last_mut() else { return };
            let opened = Instant::now();
            span.extensions_mut().insert(Slot { level, index: buffer.stages.len(), opened });
            buffer.stages.push(Stage {
                name: span.name().to_string(),
                depth: span.scope().skip(1).count() as u32,
                start_ms: opened.duration_since(buffer.started).as_secs_f64() * 1e3,
                took_ms: 0.0,
                fields: fields.0,
            });
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        with_stage(id, &context, |stage, _| {
            let mut fields = Fields(std::mem::take(&mut stage.fields));
            values.record(&mut fields);
            stage.fields = fields.0;
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        with_stage(&id, &context, |stage, opened| stage.took_ms = opened.elapsed().as_secs_f64() * 1e3);
    }
}

fn with_stage<S: Subscriber + for<'a> LookupSpan<'a>>(
    id: &Id,
    context: &Context<'_, S>,
    change: impl FnOnce(&mut Stage, Instant),
) {
    let Some(span) = context.span(id) else { return };
    let extensions = span.extensions();
    let Some(slot) = extensions.get::<Slot>() else { return };
    BUFFERS.with_borrow_mut(|buffers| {
        // A span that outlives its capture, or is closed on another thread, has nowhere to go.
        if let Some(stage) =
            buffers.get_mut(slot.level - 1).and_then(|buffer| buffer.stages.get_mut(slot.index))
        {
            change(stage, slot.opened);
        }
    });
}

struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_string(), value);
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_captures_both_see_the_inner_stage() {
        let ((_, inner), outer) = capture(|| {
            let _outer = tracing::info_span!("outer").entered();
            capture(|| {
                let stage = tracing::info_span!("inner", hits = tracing::field::Empty).entered();
                stage.record("hits", 3);
            })
        });
        assert_eq!(inner.stages.len(), 1);
        assert_eq!(inner.stages[0].fields["hits"], 3);
        assert!(outer.ran("outer") && outer.ran("inner"));
    }

    #[test]
    fn a_span_first_opened_outside_of_a_capture_is_collected_later() {
        let stage = || tracing::info_span!("late").in_scope(|| ());
        let _ = capture(|| ());
        stage();
        let ((), trace) = capture(stage);
        assert!(trace.ran("late"));
    }

    #[test]
    fn a_skipped_stage_did_not_run() {
        let ((), trace) = capture(|| {
            tracing::info_span!("rerank", skipped = "no reranker configured").in_scope(|| ());
            tracing::debug_span!("detail").in_scope(|| ());
        });
        assert!(!trace.ran("rerank") && !trace.sound("rerank"));
        assert_eq!(trace.stages.len(), 1, "debug spans are not stages");
    }

    #[test]
    fn a_needless_stage_is_sound_unless_it_failed() {
        let ((), trace) = capture(|| {
            tracing::info_span!("expansion", skipped = "sure already", needless = true).in_scope(|| ());
            tracing::info_span!("broken", needless = true, error = "no model").in_scope(|| ());
        });
        assert!(!trace.ran("expansion") && trace.sound("expansion"));
        assert!(!trace.sound("broken") && !trace.sound("absent"));
    }

    #[test]
    fn a_panic_leaves_the_stack_clean() {
        let caught = std::panic::catch_unwind(|| capture(|| panic!("in a subject")));
        assert!(caught.is_err());
        assert!(BUFFERS.with_borrow(Vec::is_empty));
    }
}
