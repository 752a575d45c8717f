//! Graphs: operations and what each waits for; captured from streams or put together node by node, then run as one.

use crate::context;
use crate::error::{Answer, Code};
use crate::handle::{self, Handle, Table};
use crate::operation::Operation;
use crate::state::{Driver, driver};
use crate::stream::{Event, Stream};
use crate::types::{In, Out};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// A node of a graph.
#[derive(Clone)]
pub struct Node {
    pub id: u64,
    pub operation: Operation,
    /// The graph inside of it, for child graphs.
    pub child: Option<u64>,
    /// Places of the nodes that come before it.
    pub after: Vec<usize>,
    pub is_removed: bool,
}

pub struct Graph {
    pub id: u64,
    nodes: Mutex<Vec<Node>>,
    /// References to objects of the client.
    objects: Mutex<BTreeMap<u64, i64>>,
}

impl Graph {
    pub fn new() -> Arc<Graph> {
        Arc::new(Graph { id: handle::fresh(), nodes: Mutex::default(), objects: Mutex::default() })
    }

    /// Notes references to an object.
    pub fn hold(&self, object: u64, count: i64) {
        *self.objects.lock().unwrap_or_else(PoisonError::into_inner).entry(object).or_default() += count;
    }

    pub fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node; its place.
    pub fn add(&self, operation: Operation, after: Vec<usize>) -> usize {
        let mut nodes = self.nodes();
        nodes.push(Node { id: handle::fresh(), operation, child: None, after, is_removed: false });
        nodes.len() - 1
    }

    /// The nodes in an order in which each comes after those that it waits for.
    pub fn order(&self) -> Answer<Vec<Node>> {
        let nodes = self.nodes();
        let mut waits: Vec<usize> =
            nodes.iter().map(|n| n.after.iter().filter(|&&a| !nodes[a].is_removed).count()).collect();
        let mut ready: BTreeSet<usize> =
            (0..nodes.len()).filter(|&n| waits[n] == 0 && !nodes[n].is_removed).collect();
        let mut order = Vec::new();
        while let Some(n) = ready.pop_first() {
            order.push(nodes[n].clone());
            for (m, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_removed) {
                let edges = node.after.iter().filter(|&&a| a == n).count();
                if edges > 0 {
                    waits[m] -= edges;
                    if waits[m] == 0 {
                        ready.insert(m);
                    }
                }
            }
        }
        // What is left waits for itself.
        let is_whole = order.len() == nodes.iter().filter(|n| !n.is_removed).count();
        if is_whole { Ok(order) } else { Err(Code::INVALID_VALUE) }
    }
}

/// A graph that can be run.
pub struct Exec {
    pub id: u64,
    /// Numbers of the graph's nodes with what they do, in order.
    nodes: Mutex<Vec<(u64, Operation)>>,
    /// References to objects of the client.
    objects: Vec<(u64, u32)>,
}

impl Exec {
    fn nodes(&self) -> MutexGuard<'_, Vec<(u64, Operation)>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what a node does.
    pub fn set(&self, node: Handle, operation: Operation) -> Answer {
        let mut nodes = self.nodes();
        let found = nodes.iter_mut().find(|(id, _)| *id == handle::id(node));
        found.ok_or(Code::INVALID_VALUE)?.1 = operation;
        Ok(())
    }
}

#[derive(Default)]
pub struct Tables {
    pub graphs: Table<Graph>,
    pub execs: Table<Exec>,
    pub objects: Table<super::user_object::UserObject>,
    captures: Mutex<Vec<Arc<Capture>>>,
}

impl Tables {
    fn captures(&self) -> MutexGuard<'_, Vec<Arc<Capture>>> {
        self.captures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The graph and the place of a node.
    pub fn find_node(&self, node: Handle) -> Answer<(Arc<Graph>, usize)> {
        for graph in self.graphs.all() {
            let place = graph.nodes().iter().position(|n| n.id == handle::id(node) && !n.is_removed);
            if let Some(place) = place {
                return Ok((graph, place));
            }
        }
        Err(Code::INVALID_VALUE)
    }
}

/// A capture under way.
pub struct Capture {
    pub id: u64,
    pub graph: Arc<Graph>,
    mode: u32,
    thread: ThreadId,
    /// The stream that it began in.
    origin: u64,
    state: Mutex<CaptureState>,
}

#[derive(Default)]
struct CaptureState {
    is_spoilt: bool,
    /// What comes next in each stream waits for these nodes.
    tails: BTreeMap<u64, Vec<usize>>,
    streams: Vec<Arc<Stream>>,
}

impl Capture {
    fn state(&self) -> MutexGuard<'_, CaptureState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It cannot end well any more.
    pub fn spoil(&self) {
        self.state().is_spoilt = true;
    }

    pub fn is_spoilt(&self) -> bool {
        self.state().is_spoilt
    }

    pub fn add(&self, stream: &Stream, operation: Operation) -> Answer {
        let mut state = self.state();
        if state.is_spoilt {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let after = state.tails.get(&stream.id).cloned().unwrap_or_default();
        let node = self.graph.add(operation, after);
        state.tails.insert(stream.id, vec![node]);
        Ok(())
    }

    /// An event stands for what the stream has so far.
    pub fn mark(self: &Arc<Capture>, stream: &Stream, event: &Event) -> Answer {
        let nodes = {
            let state = self.state();
            if state.is_spoilt {
                return Err(Code::STREAM_CAPTURE_INVALIDATED);
            }
            state.tails.get(&stream.id).cloned().unwrap_or_default()
        };
        let mut state = event.state();
        (state.place, state.time) = (None, None);
        state.generation += 1;
        state.captured = Some((self.clone(), nodes));
        Ok(())
    }

    /// A stream waits for nodes of the capture, and belongs to it from now on.
    pub fn join(self: &Arc<Capture>, stream: &Arc<Stream>, nodes: &[usize]) -> Answer {
        if stream.is_null() {
            self.spoil();
            return Err(Code::STREAM_CAPTURE_IMPLICIT);
        }
        let mut slot = stream.capture_slot();
        if slot.as_ref().is_some_and(|c| !Arc::ptr_eq(c, self)) {
            self.spoil();
            return Err(Code::STREAM_CAPTURE_MERGE);
        }
        let mut state = self.state();
        if state.is_spoilt {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        if slot.is_none() {
            *slot = Some(self.clone());
            state.streams.push(stream.clone());
        }
        let tail = state.tails.entry(stream.id).or_default();
        tail.extend(nodes.iter().filter(|n| !tail.contains(n)).copied().collect::<Vec<_>>());
        Ok(())
    }

    /// All that other streams did is waited for by the one that the capture began in.
    fn is_joined(&self) -> bool {
        let state = self.state();
        let nodes = self.graph.nodes();
        let mut reached = BTreeSet::new();
        let mut next = state.tails.get(&self.origin).cloned().unwrap_or_default();
        while let Some(n) = next.pop() {
            if reached.insert(n) {
                next.extend(nodes[n].after.iter().copied());
            }
        }
        state.tails.values().flatten().all(|n| reached.contains(n))
    }
}

/// Some capture is under way that calls of this thread may disturb.
pub fn is_capturing(driver: &Driver) -> bool {
    let here = std::thread::current().id();
    // 0: whichever thread; 1: those of the thread that began it; 2: none.
    driver.graphs.captures().iter().any(|c| c.mode == 0 || (c.mode == 1 && c.thread == here))
}

pub fn begin_capture(handle: Handle, mode: u32) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, handle)?;
    if mode > 2 {
        return Err(Code::INVALID_VALUE);
    }
    if stream.is_null() {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut slot = stream.capture_slot();
    if slot.is_some() {
        return Err(Code::ILLEGAL_STATE);
    }
    let capture = Arc::new(Capture {
        id: handle::fresh(),
        graph: Graph::new(),
        mode,
        thread: std::thread::current().id(),
        origin: stream.id,
        state: Mutex::new(CaptureState {
            tails: BTreeMap::from([(stream.id, Vec::new())]),
            streams: vec![stream.clone()],
            ..CaptureState::default()
        }),
    });
    driver.graphs.captures().push(capture.clone());
    *slot = Some(capture);
    Ok(())
}

pub fn end_capture(handle: Handle, out: Out<Handle>) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, handle)?;
    let capture = stream.capture().ok_or(Code::ILLEGAL_STATE)?;
    out.put(std::ptr::null_mut())?;
    if capture.origin != stream.id {
        capture.spoil();
        return Err(Code::STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != 2 && capture.thread != std::thread::current().id() {
        return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
    }
    driver.graphs.captures().retain(|c| !Arc::ptr_eq(c, &capture));
    let streams = std::mem::take(&mut capture.state().streams);
    for stream in streams {
        *stream.capture_slot() = None;
    }
    if capture.is_spoilt() {
        return Err(Code::STREAM_CAPTURE_INVALIDATED);
    }
    if !capture.is_joined() {
        return Err(Code::STREAM_CAPTURE_UNJOINED);
    }
    out.put(driver.graphs.graphs.insert(capture.graph.id, capture.graph.clone()))
}

/// 0 not captured, 1 captured, 2 spoilt.
fn status(stream: &Stream) -> u32 {
    match stream.capture() {
        None => 0,
        Some(capture) => 1 + u32::from(capture.is_spoilt()),
    }
}

pub fn is_stream_capturing(handle: Handle, out: Out<u32>) -> Answer {
    out.put(status(&*Stream::find(driver()?, handle)?))
}

pub fn capture_info(
    handle: Handle,
    out: Out<u32>,
    id: Out<u64>,
    graph: Out<Handle>,
    dependencies: Out<Handle>,
    count: Out<usize>,
) -> Answer {
    let driver = driver()?;
    let stream = Stream::find(driver, handle)?;
    out.put(status(&stream))?;
    dependencies.offer(std::ptr::null_mut());
    count.offer(0);
    if let Some(capture) = stream.capture() {
        id.offer(capture.id);
        if !graph.is_null() {
            graph.put(driver.graphs.graphs.insert(capture.graph.id, capture.graph.clone()))?;
        }
    }
    Ok(())
}

pub fn capture_info_v1(handle: Handle, out: Out<u32>, id: Out<u64>) -> Answer {
    let stream = Stream::find(driver()?, handle)?;
    out.put(status(&stream))?;
    if let Some(capture) = stream.capture() {
        id.offer(capture.id);
    }
    Ok(())
}

pub fn capture_info_v3(
    handle: Handle,
    out: Out<u32>,
    id: Out<u64>,
    graph: Out<Handle>,
    dependencies: Out<Handle>,
    edges: Out<Handle>,
    count: Out<usize>,
) -> Answer {
    edges.offer(std::ptr::null_mut());
    capture_info(handle, out, id, graph, dependencies, count)
}

pub fn exchange_mode(mode: Out<u32>) -> Answer {
    thread_local! {
        static MODE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    let wanted = mode.get()?;
    if wanted > 2 {
        return Err(Code::INVALID_VALUE);
    }
    mode.put(MODE.replace(wanted))
}

pub fn create(out: Out<Handle>, flags: u32) -> Answer {
    let driver = driver()?;
    if out.is_null() || flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let graph = Graph::new();
    out.put(driver.graphs.graphs.insert(graph.id, graph))
}

/// The graph of a handle; freed and foreign ones are invalid values, as graphs are.
pub fn find(handle: Handle) -> Answer<Arc<Graph>> {
    driver()?.graphs.graphs.find(handle).ok_or(Code::INVALID_VALUE)
}

pub fn destroy(graph: Handle) -> Answer {
    let found = find(graph)?;
    driver()?.graphs.graphs.remove(graph)?;
    let objects = std::mem::take(&mut *found.objects.lock().unwrap_or_else(PoisonError::into_inner));
    for (object, count) in objects.into_iter().filter(|(_, count)| *count > 0) {
        super::user_object::release(handle::handle(object), count as u32)?;
    }
    Ok(())
}

pub fn clone(out: Out<Handle>, graph: Handle) -> Answer {
    let driver = driver()?;
    let copy = Graph::new();
    let mut nodes = find(graph)?.nodes().clone();
    nodes.iter_mut().for_each(|n| n.id = handle::fresh());
    *copy.nodes() = nodes;
    out.put(driver.graphs.graphs.insert(copy.id, copy))
}

/// What a graph does, in order, child graphs inside.
fn operations(graph: &Graph) -> Answer<Vec<(u64, Operation)>> {
    let driver = driver()?;
    let mut all = Vec::new();
    for node in graph.order()? {
        let operation = match node.child {
            None => node.operation,
            Some(child) => {
                let child = driver.graphs.graphs.find(handle::handle(child)).ok_or(Code::INVALID_VALUE)?;
                let inner = operations(&child)?.into_iter().map(|(_, o)| o).collect();
                Operation::Graph(Arc::new(inner))
            }
        };
        all.push((node.id, operation));
    }
    Ok(all)
}

fn make(out: Out<Handle>, graph: Handle) -> Answer {
    let driver = driver()?;
    context::current()?;
    let graph = find(graph)?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let nodes = operations(&graph)?;
    let held = graph.objects.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let objects: Vec<(u64, u32)> =
        held.into_iter().filter(|(_, n)| *n > 0).map(|(object, n)| (object, n as u32)).collect();
    for &(object, count) in &objects {
        super::user_object::retain(handle::handle(object), count)?;
    }
    let exec = Arc::new(Exec { id: handle::fresh(), nodes: Mutex::new(nodes), objects });
    out.put(driver.graphs.execs.insert(exec.id, exec))
}

pub fn instantiate(out: Out<Handle>, graph: Handle, flags: u64) -> Answer {
    // Freeing memory of graphs, uploading, launching from the device, priorities.
    if flags & !0xf != 0 { Err(Code::INVALID_VALUE) } else { make(out, graph) }
}

/// The older way: with a node that is to blame, and a log.
pub fn instantiate_v2(
    out: Out<Handle>,
    graph: Handle,
    node: Out<Handle>,
    log: Out<u8>,
    bytes: usize,
) -> Answer {
    node.offer(std::ptr::null_mut());
    if bytes > 0 {
        log.offer(0);
    }
    make(out, graph)
}

/// Flags, stream to upload in, node that is to blame, what went wrong.
pub fn instantiate_params(out: Out<Handle>, graph: Handle, params: Out<[u64; 4]>) -> Answer {
    let mut asked = params.get()?;
    let made = make(out, graph);
    asked[2] = 0;
    asked[3] = u64::from(made.is_err());
    params.put(asked)?;
    made
}

pub fn exec(handle: Handle) -> Answer<Arc<Exec>> {
    driver()?.graphs.execs.find(handle).ok_or(Code::INVALID_VALUE)
}

pub fn exec_destroy(exec_handle: Handle) -> Answer {
    let found = exec(exec_handle)?;
    driver()?.graphs.execs.remove(exec_handle)?;
    for &(object, count) in &found.objects {
        super::user_object::release(handle::handle(object), count)?;
    }
    Ok(())
}

pub fn exec_flags(_handle: Handle, out: Out<u64>) -> Answer {
    out.put(0)
}

pub fn launch(handle: Handle, stream: Handle) -> Answer {
    let exec = exec(handle)?;
    let stream = Stream::find(driver()?, stream)?;
    let operations = exec.nodes().iter().map(|(_, o)| o.clone()).collect();
    stream.enqueue(Operation::Graph(Arc::new(operations))).map(|_| ())
}

pub fn upload(handle: Handle, stream: Handle) -> Answer {
    exec(handle)?;
    Stream::find(driver()?, stream).map(|_| ())
}

/// Takes over what the nodes of a graph of the same shape do.
pub fn exec_update(handle: Handle, graph: Handle, result: Out<u64>) -> Answer {
    let exec = exec(handle)?;
    let new = operations(&*find(graph)?)?;
    let mut nodes = exec.nodes();
    let kind = |o: &Operation| std::mem::discriminant(o);
    let fits =
        nodes.len() == new.len() && nodes.iter().zip(&new).all(|((_, old), (_, now))| kind(old) == kind(now));
    // 1: an error of no special kind.
    result.offer(u64::from(!fits));
    if !fits {
        return Err(Code::GRAPH_EXEC_UPDATE_FAILURE);
    }
    for ((_, old), (_, now)) in nodes.iter_mut().zip(new) {
        *old = now;
    }
    Ok(())
}

/// A list of handles, as graphs give them: all that fit, or how many there are.
pub fn put_list(out: Out<Handle>, count: Out<usize>, list: &[u64]) -> Answer {
    if out.is_null() {
        return count.put(list.len());
    }
    let room = count.get()?;
    for n in 0..room {
        out.put_at(n, list.get(n).map_or(std::ptr::null_mut(), |&id| handle::handle(id)))?;
    }
    count.put(list.len().min(room))
}

pub fn nodes(graph: Handle, out: Out<Handle>, count: Out<usize>) -> Answer {
    let graph = find(graph)?;
    let ids: Vec<u64> = graph.nodes().iter().filter(|n| !n.is_removed).map(|n| n.id).collect();
    put_list(out, count, &ids)
}

pub fn root_nodes(graph: Handle, out: Out<Handle>, count: Out<usize>) -> Answer {
    let graph = find(graph)?;
    let nodes = graph.nodes();
    let is_root = |n: &&Node| !n.is_removed && n.after.iter().all(|&a| nodes[a].is_removed);
    let ids: Vec<u64> = nodes.iter().filter(is_root).map(|n| n.id).collect();
    put_list(out, count, &ids)
}

pub fn edges(graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) -> Answer {
    let graph = find(graph)?;
    let nodes = graph.nodes();
    let alive = nodes.iter().filter(|n| !n.is_removed);
    let pairs = alive.flat_map(|n| n.after.iter().map(|&a| (nodes[a].id, n.id)));
    let (starts, ends): (Vec<u64>, Vec<u64>) = pairs.unzip();
    let room = count.get().unwrap_or(0);
    put_list(from, count, &starts)?;
    if !to.is_null() {
        count.put(room)?;
        put_list(to, count, &ends)?;
    }
    Ok(())
}

/// The places of nodes in their graph.
pub fn places(graph: &Graph, list: In<Handle>, count: usize) -> Answer<Vec<usize>> {
    let nodes = graph.nodes();
    let place = |h: Handle| nodes.iter().position(|n| n.id == handle::id(h) && !n.is_removed);
    list.list(count)?.into_iter().map(|h| place(h).ok_or(Code::INVALID_VALUE)).collect()
}

pub fn add_dependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) -> Answer {
    let graph = find(graph)?;
    let (from, to) = (places(&graph, from, count)?, places(&graph, to, count)?);
    for (&from, &to) in from.iter().zip(&to) {
        let mut nodes = graph.nodes();
        if from == to || nodes[to].after.contains(&from) {
            return Err(Code::INVALID_VALUE);
        }
        nodes[to].after.push(from);
    }
    Ok(())
}

pub fn remove_dependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) -> Answer {
    let graph = find(graph)?;
    let (from, to) = (places(&graph, from, count)?, places(&graph, to, count)?);
    for (&from, &to) in from.iter().zip(&to) {
        graph.nodes()[to].after.retain(|&a| a != from);
    }
    Ok(())
}

/// The same with data for each edge, of which there is none.
pub fn add_dependencies_v2(
    graph: Handle,
    from: In<Handle>,
    to: In<Handle>,
    _edges: usize,
    count: usize,
) -> Answer {
    add_dependencies(graph, from, to, count)
}

pub fn remove_dependencies_v2(
    graph: Handle,
    from: In<Handle>,
    to: In<Handle>,
    _edges: usize,
    count: usize,
) -> Answer {
    remove_dependencies(graph, from, to, count)
}

pub fn edges_v2(
    graph: Handle,
    from: Out<Handle>,
    to: Out<Handle>,
    data: Out<u64>,
    count: Out<usize>,
) -> Answer {
    edges(graph, from, to, count)?;
    no_data(from, data, count)
}

/// Fills the data of edges that were given with zeros.
pub fn no_data(list: Out<Handle>, data: Out<u64>, count: Out<usize>) -> Answer {
    if list.is_null() || data.is_null() {
        return Ok(());
    }
    (0..count.get()?).try_for_each(|n| data.put_at(n, 0))
}
