//! Graphs: built node by node or captured, instantiated, launched.

use super::copy::slices_of;
use super::launch::function;
use crate::driver::Driver;
use crate::error::{Answer, Code};
use crate::runtime::{self, enter, stream};
use crate::types::driver::{KernelNode as DriverKernel, Memcpy3d, Side3d};
use crate::types::{Handle, In, KernelNode, Memcpy3dParms, MemsetNode, Out};

const NONE: Handle = std::ptr::null_mut();

pub fn create(out: Out<Handle>, flags: u32) -> Answer {
    enter()?.cuGraphCreate(out, flags)
}

pub fn destroy(graph: Handle) -> Answer {
    enter()?.cuGraphDestroy(graph)
}

pub fn clone(out: Out<Handle>, graph: Handle) -> Answer {
    enter()?.cuGraphClone(out, graph)
}

pub fn instantiate(out: Out<Handle>, graph: Handle, flags: u64) -> Answer {
    enter()?.cuGraphInstantiateWithFlags(out, graph, flags)
}

pub fn exec_destroy(exec: Handle) -> Answer {
    enter()?.cuGraphExecDestroy(exec)
}

pub fn exec_flags(exec: Handle, out: Out<u64>) -> Answer {
    enter()?.cuGraphExecGetFlags(exec, out)
}

pub fn exec_update(exec: Handle, graph: Handle, result: Out<u64>) -> Answer {
    enter()?.cuGraphExecUpdate_v2(exec, graph, result)
}

pub fn launch(exec: Handle, on: Handle) -> Answer {
    enter()?.cuGraphLaunch(exec, stream(on))
}

pub fn upload(exec: Handle, on: Handle) -> Answer {
    enter()?.cuGraphUpload(exec, stream(on))
}

pub fn nodes(graph: Handle, out: Out<Handle>, count: Out<usize>) -> Answer {
    enter()?.cuGraphGetNodes(graph, out, count)
}

pub fn root_nodes(graph: Handle, out: Out<Handle>, count: Out<usize>) -> Answer {
    enter()?.cuGraphGetRootNodes(graph, out, count)
}

pub fn edges(graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) -> Answer {
    enter()?.cuGraphGetEdges(graph, from, to, count)
}

pub fn edges_data(
    graph: Handle,
    from: Out<Handle>,
    to: Out<Handle>,
    data: Handle,
    count: Out<usize>,
) -> Answer {
    enter()?.cuGraphGetEdges_v2(graph, from, to, data, count)
}

pub fn add_dependencies(graph: Handle, from: Handle, to: Handle, count: usize) -> Answer {
    add_dependencies_data(graph, from, to, NONE, count)
}

pub fn add_dependencies_data(graph: Handle, from: Handle, to: Handle, data: Handle, count: usize) -> Answer {
    enter()?.cuGraphAddDependencies_v2(graph, from, to, data, count)
}

pub fn remove_dependencies(graph: Handle, from: Handle, to: Handle, count: usize) -> Answer {
    remove_dependencies_data(graph, from, to, NONE, count)
}

pub fn remove_dependencies_data(
    graph: Handle,
    from: Handle,
    to: Handle,
    data: Handle,
    count: usize,
) -> Answer {
    enter()?.cuGraphRemoveDependencies_v2(graph, from, to, data, count)
}

/// A kernel node in the driver's words.
fn kernel(driver: &Driver, node: In<KernelNode>) -> Answer<DriverKernel> {
    let n = node.get()?;
    Ok(DriverKernel {
        function: function(driver, n.function)?,
        grid: n.grid,
        block: n.block,
        shared_bytes: n.shared_bytes,
        params: n.params,
        extra: n.extra,
        kernel: NONE,
        context: NONE,
    })
}

pub fn add_kernel(
    out: Out<Handle>,
    graph: Handle,
    after: Handle,
    count: usize,
    node: In<KernelNode>,
) -> Answer {
    let driver = enter()?;
    driver.cuGraphAddKernelNode_v2(out, graph, after, count, In::of(&kernel(driver, node)?))
}

pub fn set_kernel(node: Handle, params: In<KernelNode>) -> Answer {
    let driver = enter()?;
    driver.cuGraphKernelNodeSetParams_v2(node, In::of(&kernel(driver, params)?))
}

pub fn exec_set_kernel(exec: Handle, node: Handle, params: In<KernelNode>) -> Answer {
    let driver = enter()?;
    driver.cuGraphExecKernelNodeSetParams_v2(exec, node, In::of(&kernel(driver, params)?))
}

/// The context that copies and fills of graphs are for.
fn context(driver: &Driver) -> Answer<Handle> {
    let mut context = NONE;
    driver.cuCtxGetCurrent(Out::to(&mut context))?;
    if context.is_null() { runtime::primary(driver, runtime::device()?) } else { Ok(context) }
}

pub fn add_copy(
    out: Out<Handle>,
    graph: Handle,
    after: Handle,
    count: usize,
    copy: In<Memcpy3dParms>,
) -> Answer {
    let driver = enter()?;
    let copy = slices_of(&copy.get()?)?;
    driver.cuGraphAddMemcpyNode(out, graph, after, count, In::of(&copy), context(driver)?)
}

/// A copy of one range.
pub fn add_copy_1d(
    out: Out<Handle>,
    graph: Handle,
    after: Handle,
    count: usize,
    to: u64,
    from: u64,
    bytes: usize,
    kind: u32,
) -> Answer {
    /// The driver's word for memory of either side: the address tells.
    const UNIFIED: u32 = 4;
    const LAST_KIND: u32 = 4;
    let driver = enter()?;
    if kind > LAST_KIND {
        return Err(Code::INVALID_COPY_DIRECTION);
    }
    let side = |address: u64| Side3d {
        kind: UNIFIED,
        host: address as usize,
        device: address,
        pitch: bytes,
        height: 1,
        ..Side3d::default()
    };
    let copy = Memcpy3d { from: side(from), to: side(to), width: bytes, height: 1, depth: 1 };
    driver.cuGraphAddMemcpyNode(out, graph, after, count, In::of(&copy), context(driver)?)
}

pub fn add_fill(
    out: Out<Handle>,
    graph: Handle,
    after: Handle,
    count: usize,
    node: In<MemsetNode>,
) -> Answer {
    let driver = enter()?;
    driver.cuGraphAddMemsetNode(out, graph, after, count, node, context(driver)?)
}

pub fn add_host(out: Out<Handle>, graph: Handle, after: Handle, count: usize, node: Handle) -> Answer {
    enter()?.cuGraphAddHostNode(out, graph, after, count, node)
}

pub fn add_empty(out: Out<Handle>, graph: Handle, after: Handle, count: usize) -> Answer {
    enter()?.cuGraphAddEmptyNode(out, graph, after, count)
}

pub fn add_child(out: Out<Handle>, graph: Handle, after: Handle, count: usize, child: Handle) -> Answer {
    enter()?.cuGraphAddChildGraphNode(out, graph, after, count, child)
}

pub fn add_record(out: Out<Handle>, graph: Handle, after: Handle, count: usize, event: Handle) -> Answer {
    enter()?.cuGraphAddEventRecordNode(out, graph, after, count, event)
}

pub fn add_wait(out: Out<Handle>, graph: Handle, after: Handle, count: usize, event: Handle) -> Answer {
    enter()?.cuGraphAddEventWaitNode(out, graph, after, count, event)
}

pub fn kind(node: Handle, out: Out<u32>) -> Answer {
    enter()?.cuGraphNodeGetType(node, out)
}

pub fn destroy_node(node: Handle) -> Answer {
    enter()?.cuGraphDestroyNode(node)
}
