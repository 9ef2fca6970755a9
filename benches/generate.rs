//! Speed of the local generator: reading a prompt, writing text, and whole answers as query expansion asks for.
//!
//! `cargo bench --bench generate [-- --texts]`; with `--texts` the answers are printed too. A machine that does
//! other work at the same time makes every figure worse, and those of two threads much worse.
#![allow(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::error::Error;
use std::time::{Duration, Instant};

use rankgate::models::{self, Generated, Generator, Prompt};
use rankgate::settings::ModelSettings;
use serde_json::json;

const QUERIES: [&str; 10] = [
    "how to cancel a contract early",
    "rust async runtime comparison",
    "best time to water tomatoes",
    "gpt-4 context window size",
    "error E0277 trait bound not satisfied",
    "vacation policy for part time staff",
    "what is reciprocal rank fusion",
    "docker container out of memory",
    "migrate postgres to sqlite",
    "symptoms of vitamin d deficiency",
];

fn main() -> Result<(), Box<dyn Error>> {
    let texts = std::env::args().any(|argument| argument == "--texts");
    println!("threads  load s  read tok/s  write tok/s  expansion p50 s  max s  tokens");
    for threads in [1, 2] {
        let generator = models::generator(&ModelSettings { threads, ..Default::default() }, None)?;
        let (load, _) = timed(&*generator, &plain("Hello", 1))?;
        // Words that no earlier prompt had: nothing of it is known.
        let long: String = (0..120).map(|n| format!("word{n} ")).collect();
        let (read, long) = timed(&*generator, &plain(&long, 1))?;
        let story = plain("Tell me a long story about a river.", 150);
        let (write, story) = timed(&*generator, &story)?;
        let mut seconds = Vec::new();
        let mut tokens = 0;
        timed(&*generator, &expansion("warm"))?; // reads the example
        for query in QUERIES {
            let (took, answer) = timed(&*generator, &expansion(query))?;
            seconds.push(took);
            tokens += answer.output_tokens;
            if texts {
                println!("{took:.2} s, {} tokens: {}", answer.output_tokens, answer.text);
            }
        }
        seconds.sort_by(f64::total_cmp);
        println!(
            "{threads:7} {load:7.2} {:11.1} {:12.1} {:16.2} {:6.2} {:7}",
            long.prompt_tokens as f64 / read,
            story.output_tokens as f64 / write,
            seconds[seconds.len() / 2],
            seconds[seconds.len() - 1],
            tokens / QUERIES.len() as u64
        );
    }
    Ok(())
}

fn timed(generator: &dyn Generator, prompt: &Prompt) -> Result<(f64, Generated), Box<dyn Error>> {
    let started = Instant::now();
    let answer = generator.generate(prompt)?;
    Ok((started.elapsed().as_secs_f64(), answer))
}

fn plain(user: &str, max_tokens: u32) -> Prompt {
    let timeout = Duration::from_secs(600);
    Prompt { user: user.into(), max_tokens, timeout, ..Prompt::default() }
}

/// A prompt as query expansion asks it.
fn expansion(query: &str) -> Prompt {
    let strings = |most: usize| {
        json!({ "type": "array", "minItems": 1, "maxItems": 3,
                "items": { "type": "string", "minLength": 2, "maxLength": most } })
    };
    let example = json!({
        "lexicalQueries": ["password reset", "forgot password recovery"],
        "vectorQueries": ["How do I recover access to my account?"],
        "hyde": "To reset your password, open the sign-in page, choose Forgot password and follow the link.",
    });
    Prompt {
        system:
            "You expand search queries. Reply with JSON: lexicalQueries (keyword variants), vectorQueries \
                 (rephrased questions), hyde (a short passage that would answer the query)."
                .into(),
        examples: vec![("Query: reset forgotten password".into(), example.to_string())],
        schema: Some(json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["lexicalQueries", "vectorQueries", "hyde"],
            "properties": {
                "lexicalQueries": strings(40),
                "vectorQueries": strings(60),
                "hyde": { "type": "string", "minLength": 20, "maxLength": 200 },
            },
        })),
        ..plain(&format!("Query: {query}"), 400)
    }
}
