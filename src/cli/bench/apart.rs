//! Candidates of one embedder, measured in a process of their own: its memory is that embedder's.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};

use crate::benchmarks::candidates::{Candidate, Job, Spec, measure, open_models};
use crate::error::{Error, ErrorKind, Result, exit};

/// Measure a job from stdin and write what was found to stdout: for the program itself
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_: Args) -> Result<ExitCode> {
    let mut job = String::new();
    let stdin = std::path::Path::new("stdin");
    std::io::stdin().read_line(&mut job).map_err(|e| Error::io("read", stdin, e))?;
    // Whoever asked keeps the pipe open: when it ends, nobody waits for the result.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(i32::from(exit::ERROR));
    });
    let job: Job = serde_json::from_str(&job).map_err(|e| Error::input(format!("the job: {e}")))?;
    let cases: usize = job.sets.iter().map(|set| set.cases.len()).sum();
    let name = job.specs.first().map(Spec::id).unwrap_or_default();
    let bar = crate::cli::progress((cases * job.specs.len()) as u64, &name);
    let found = measure(&job, &|| open_models(&job), &mut || bar.inc(1));
    bar.finish_and_clear();
    crate::cli::print(&crate::cli::json(&found))?;
    Ok(ExitCode::SUCCESS)
}

/// The candidates of the jobs, one process after the other, in the order of `specs`. A process that ends badly fails
/// its candidates.
pub(super) fn measured(jobs: &[Job], specs: &[Spec]) -> Result<Vec<Candidate>> {
    let mut found: Vec<Candidate> = Vec::new();
    for job in jobs {
        let embedder = job.specs.first().and_then(|spec| spec.embedder.as_deref()).unwrap_or("words alone");
        eprintln!("measuring {} candidates: {embedder}", job.specs.len());
        let candidates = in_a_process(job)?;
        found.extend(candidates.unwrap_or_else(|why| {
            job.specs.iter().map(|spec| Candidate::failed(spec, why.clone())).collect()
        }));
    }
    let place = |candidate: &Candidate| specs.iter().position(|spec| spec.id() == candidate.id);
    found.sort_by_key(place);
    Ok(found)
}

/// What the process of a job found, or why it ended without.
fn in_a_process(job: &Job) -> Result<Result<Vec<Candidate>, String>> {
    let failed = |e| Error::new(ErrorKind::Io, "the program cannot be started again").with_source(e);
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .args(["bench", "measure"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let text = serde_json::to_string(job).expect("a job is plain data with text keys") + "\n";
    let mut stdin = child.stdin.take();
    // A process that dies before it has read all of it says more by how it ended.
    let _ = stdin.as_mut().map(|stdin| stdin.write_all(text.as_bytes()));
    let mut found = Vec::new();
    let _ = child.stdout.take().map(|mut stdout| stdout.read_to_end(&mut found));
    let status = child.wait().map_err(failed)?;
    drop(stdin);
    if !status.success() {
        return Ok(Err(format!("its process ended with {status}")));
    }
    Ok(serde_json::from_slice(&found).map_err(|e| format!("its process wrote no result: {e}")))
}
