//! Nodes of graphs: making, asking, changing.

use super::copy::described;
use super::graph::{self, Exec};
use super::launch;
use crate::error::{Answer, Code};
use crate::handle::{self, Handle};
use crate::memory::Fill;
use crate::operation::{HostFunction, Kernel, Operation};
use crate::program;
use crate::state::driver;
use crate::types::{HostNode, In, KernelNode, KernelNodeV1, Memcpy3d, MemsetNode, Out};
use driver::Dim;
use std::sync::Arc;

fn add(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    operation: Operation,
    child: Option<u64>,
) -> Answer {
    let graph = graph::find(graph)?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let after = graph::places(&graph, after, count)?;
    let place = graph.add(operation, after);
    let mut nodes = graph.nodes();
    nodes[place].child = child;
    out.put(handle::handle(nodes[place].id))
}

fn kernel_of(node: &KernelNodeV1, kernel: Handle) -> Answer<Operation> {
    let driver = driver()?;
    let function = if node.function.is_null() { kernel } else { node.function };
    let function = program::function(driver, function)?;
    let dim = Dim { grid: node.grid, block: node.block, shared_bytes: node.shared_bytes };
    launch::check(driver, &function, &dim)?;
    let params = launch::parameters(function.code()?, node.params, node.extra)?;
    Ok(Operation::Kernel(Kernel { function, dim, params, is_cooperative: false }))
}

pub fn add_kernel(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    node: In<KernelNodeV1>,
) -> Answer {
    add(out, graph, after, count, kernel_of(&node.get()?, std::ptr::null_mut())?, None)
}

pub fn add_kernel_v2(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    node: In<KernelNode>,
) -> Answer {
    let node = node.get()?;
    add(out, graph, after, count, kernel_of(&node.first, node.kernel)?, None)
}

pub fn add_copy(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    copy: In<Memcpy3d>,
    _context: Handle,
) -> Answer {
    let copy = described(driver()?, &copy.get()?)?;
    add(out, graph, after, count, Operation::Copy(copy), None)
}

fn fill_of(node: In<MemsetNode>) -> Answer<Operation> {
    let n = node.get()?;
    let fill = Fill {
        to: n.to,
        pitch: n.pitch as u64,
        value: n.value,
        size: u64::from(n.size),
        width: n.width as u64,
        height: n.height as u64,
    };
    if !matches!(n.size, 1 | 2 | 4) {
        return Err(Code::INVALID_VALUE);
    }
    fill.check(driver()?)?;
    Ok(Operation::Fill(fill))
}

pub fn add_fill(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    node: In<MemsetNode>,
    _context: Handle,
) -> Answer {
    add(out, graph, after, count, fill_of(node)?, None)
}

fn host_of(node: In<HostNode>) -> Answer<Operation> {
    let node = node.get()?;
    let function = node.function.ok_or(Code::INVALID_VALUE)?;
    Ok(Operation::Host(HostFunction { function, data: node.data }))
}

pub fn add_host(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    node: In<HostNode>,
) -> Answer {
    add(out, graph, after, count, host_of(node)?, None)
}

pub fn add_empty(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) -> Answer {
    add(out, graph, after, count, Operation::Nothing, None)
}

pub fn add_child(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, child: Handle) -> Answer {
    // The child as it is now.
    let driver = driver()?;
    let copy = graph::Graph::new();
    let nodes = graph::find(child)?.nodes().clone();
    *copy.nodes() = nodes;
    driver.graphs.graphs.insert(copy.id, copy.clone());
    add(out, graph, after, count, Operation::Nothing, Some(copy.id))
}

pub fn add_record(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) -> Answer {
    let event = driver()?.events.get(event)?;
    add(out, graph, after, count, Operation::Record(event), None)
}

pub fn add_wait(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) -> Answer {
    let event = driver()?.events.get(event)?;
    add(out, graph, after, count, Operation::Wait(event), None)
}

pub fn kind(node: Handle, out: Out<u32>) -> Answer {
    let (graph, place) = driver()?.graphs.find_node(node)?;
    let nodes = graph.nodes();
    out.put(match &nodes[place].operation {
        _ if nodes[place].child.is_some() => 4,
        Operation::Kernel(_) => 0,
        Operation::Copy(_) => 1,
        Operation::Fill(_) => 2,
        Operation::Host(_) => 3,
        Operation::Graph(_) => 4,
        Operation::Nothing => 5,
        Operation::Wait(_) => 6,
        Operation::Record(_) => 7,
        Operation::Free(_) => 11,
        Operation::WriteValue(_) => 12,
    })
}

pub fn dependencies(node: Handle, out: Out<Handle>, count: Out<usize>) -> Answer {
    let (graph, place) = driver()?.graphs.find_node(node)?;
    let nodes = graph.nodes();
    let ids: Vec<u64> = nodes[place].after.iter().map(|&a| nodes[a].id).collect();
    graph::put_list(out, count, &ids)
}

pub fn dependents(node: Handle, out: Out<Handle>, count: Out<usize>) -> Answer {
    let (graph, place) = driver()?.graphs.find_node(node)?;
    let nodes = graph.nodes();
    let ids: Vec<u64> =
        nodes.iter().filter(|n| !n.is_removed && n.after.contains(&place)).map(|n| n.id).collect();
    graph::put_list(out, count, &ids)
}

pub fn dependencies_v2(node: Handle, out: Out<Handle>, data: Out<u64>, count: Out<usize>) -> Answer {
    dependencies(node, out, count)?;
    graph::no_data(out, data, count)
}

pub fn dependents_v2(node: Handle, out: Out<Handle>, data: Out<u64>, count: Out<usize>) -> Answer {
    dependents(node, out, count)?;
    graph::no_data(out, data, count)
}

pub fn destroy(node: Handle) -> Answer {
    let (graph, place) = driver()?.graphs.find_node(node)?;
    graph.nodes()[place].is_removed = true;
    Ok(())
}

pub fn child_graph(node: Handle, out: Out<Handle>) -> Answer {
    let (graph, place) = driver()?.graphs.find_node(node)?;
    let child = graph.nodes()[place].child.ok_or(Code::INVALID_VALUE)?;
    out.put(handle::handle(child))
}

fn change(node: Handle, operation: Operation) -> Answer {
    let (graph, place) = driver()?.graphs.find_node(node)?;
    graph.nodes()[place].operation = operation;
    Ok(())
}

pub fn set_kernel(node: Handle, params: In<KernelNodeV1>) -> Answer {
    change(node, kernel_of(&params.get()?, std::ptr::null_mut())?)
}

pub fn set_kernel_v2(node: Handle, params: In<KernelNode>) -> Answer {
    let params = params.get()?;
    change(node, kernel_of(&params.first, params.kernel)?)
}

pub fn set_copy(node: Handle, copy: In<Memcpy3d>) -> Answer {
    change(node, Operation::Copy(described(driver()?, &copy.get()?)?))
}

pub fn set_fill(node: Handle, params: In<MemsetNode>) -> Answer {
    change(node, fill_of(params)?)
}

pub fn set_host(node: Handle, params: In<HostNode>) -> Answer {
    change(node, host_of(params)?)
}

fn exec(handle: Handle) -> Answer<Arc<Exec>> {
    graph::exec(handle)
}

pub fn exec_set_kernel(handle: Handle, node: Handle, params: In<KernelNodeV1>) -> Answer {
    exec(handle)?.set(node, kernel_of(&params.get()?, std::ptr::null_mut())?)
}

pub fn exec_set_kernel_v2(handle: Handle, node: Handle, params: In<KernelNode>) -> Answer {
    let params = params.get()?;
    exec(handle)?.set(node, kernel_of(&params.first, params.kernel)?)
}

pub fn exec_set_copy(handle: Handle, node: Handle, copy: In<Memcpy3d>, _context: Handle) -> Answer {
    exec(handle)?.set(node, Operation::Copy(described(driver()?, &copy.get()?)?))
}

pub fn exec_set_fill(handle: Handle, node: Handle, params: In<MemsetNode>, _context: Handle) -> Answer {
    exec(handle)?.set(node, fill_of(params)?)
}

pub fn exec_set_host(handle: Handle, node: Handle, params: In<HostNode>) -> Answer {
    exec(handle)?.set(node, host_of(params)?)
}

pub fn exec_set_child(handle: Handle, node: Handle, child: Handle) -> Answer {
    let inner = graph::find(child)?.order()?.into_iter().map(|n| n.operation).collect();
    exec(handle)?.set(node, Operation::Graph(Arc::new(inner)))
}
