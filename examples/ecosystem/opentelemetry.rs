//! Traces calls with OpenTelemetry: the span of the service is a child of the caller's.
//!
//! Requests carry the trace context before their body, in the format of W3C's `traceparent`. The
//! exporter passes spans on within the program; replace it, for example by one for OTLP.
//!
//!     cargo run --example opentelemetry

use cloudburst::{Endpoint, RequestParts, Security};
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use std::collections::HashMap;
use std::error::Error;
use std::str;
use std::sync::mpsc;
use tracing::level_filters::LevelFilter;
use tracing::{Instrument, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const TRACE_PARENT: &str = "traceparent";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for span in run().await? {
        let trace = span.span_context.trace_id();
        let id = span.span_context.span_id();
        println!("{trace} {id} child of {}: {}", span.parent_span_id, span.name);
    }
    Ok(())
}

/// Makes a call, and returns the spans of both ends.
async fn run() -> Result<Vec<SpanData>, Box<dyn Error>> {
    let (exporter, spans) = mpsc::channel();
    let provider = SdkTracerProvider::builder().with_simple_exporter(Exporter(exporter)).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("example"));
    // At the level debug, this includes the library's spans.
    let subscriber = tracing_subscriber::registry().with(LevelFilter::INFO).with(layer);
    let _listening = subscriber.set_default();

    let client = endpoint()?;
    let server = endpoint()?;
    let to = server.local_addr();
    let serving = tokio::spawn(async move { server.serve(8, answer).await });
    let span = info_span!("ask", otel.kind = "client");
    let request = with_context(&span.context(), b"hello");
    let response = client.call(to, request).into_future().instrument(span).await?;
    if response != "HELLO" {
        return Err(format!("unexpected response: {response:?}").into());
    }
    serving.abort();
    Ok(spans.try_iter().collect())
}

/// Passes on spans that have ended.
#[derive(Debug)]
struct Exporter(mpsc::Sender<SpanData>);

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        // The receiver may be gone.
        batch.into_iter().for_each(|span| drop(self.0.send(span)));
        Ok(())
    }
}

async fn answer(request: RequestParts) -> Vec<u8> {
    let Some((caller, body)) = split_context(&request.bytes) else { return Vec::new() };
    let span = info_span!("answer", otel.kind = "server");
    // If this fails, the request is answered without a trace.
    let _ = span.set_parent(caller);
    async { body.to_ascii_uppercase() }.instrument(span).await
}

/// Returns a request with the caller's context: a byte with the context's length, the context, and
/// the body.
fn with_context(context: &Context, body: &[u8]) -> Vec<u8> {
    let mut fields = HashMap::new();
    TraceContextPropagator::new().inject_context(context, &mut fields);
    let parent = fields.remove(TRACE_PARENT).unwrap_or_default();
    let length = u8::try_from(parent.len()).expect("W3C: traceparent has 55 bytes");
    [&[length], parent.as_bytes(), body].concat()
}

/// Returns the caller's context and the body, or `None` if the request is malformed.
fn split_context(request: &[u8]) -> Option<(Context, &[u8])> {
    let (length, rest) = request.split_first()?;
    let (parent, body) = rest.split_at_checked(usize::from(*length))?;
    let parent = str::from_utf8(parent).ok()?;
    let fields = HashMap::from([(TRACE_PARENT.to_owned(), parent.to_owned())]);
    Some((TraceContextPropagator::new().extract_with_context(&Context::new(), &fields), body))
}

fn endpoint() -> Result<Endpoint, Box<dyn Error>> {
    let security = Security::pre_shared([42; 32]);
    Ok(Endpoint::builder().bind("127.0.0.1:0".parse()?).security(security).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_span_of_the_service_is_the_child_of_the_callers() {
        let spans = run().await.unwrap();
        let span = |name| spans.iter().find(|span| span.name == name).unwrap();
        let asks = span("ask");
        let answers = span("answer");
        assert_eq!(answers.span_context.trace_id(), asks.span_context.trace_id());
        assert_eq!(answers.parent_span_id, asks.span_context.span_id());
    }

    #[test]
    fn requests_of_another_form_have_no_context() {
        for request in [&b""[..], &[9, 1, 2], &[2, 0xff, 0xfe]] {
            assert!(split_context(request).is_none(), "{request:?}");
        }
    }
}
