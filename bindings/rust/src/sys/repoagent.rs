// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/triton/core/tritonrepoagent.h`, which documents every function. Written by make_sys.py.
use super::*;

pub const TRITONREPOAGENT_API_VERSION_MAJOR: u32 = 0;
pub const TRITONREPOAGENT_API_VERSION_MINOR: u32 = 1;
opaque!(TRITONREPOAGENT_Agent);
opaque!(TRITONREPOAGENT_AgentModel);
pub type TRITONREPOAGENT_ArtifactType = c_uint;
pub const TRITONREPOAGENT_ARTIFACT_FILESYSTEM: TRITONREPOAGENT_ArtifactType = 0;
pub const TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM: TRITONREPOAGENT_ArtifactType = 1;
pub type TRITONREPOAGENT_ActionType = c_uint;
pub const TRITONREPOAGENT_ACTION_LOAD: TRITONREPOAGENT_ActionType = 0;
pub const TRITONREPOAGENT_ACTION_LOAD_COMPLETE: TRITONREPOAGENT_ActionType = 1;
pub const TRITONREPOAGENT_ACTION_LOAD_FAIL: TRITONREPOAGENT_ActionType = 2;
pub const TRITONREPOAGENT_ACTION_UNLOAD: TRITONREPOAGENT_ActionType = 3;
pub const TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE: TRITONREPOAGENT_ActionType = 4;

// Defined by the plugin.
pub type TRITONREPOAGENT_Initialize_t =
    unsafe extern "C" fn(agent: *mut TRITONREPOAGENT_Agent) -> *mut TRITONSERVER_Error;
pub type TRITONREPOAGENT_Finalize_t =
    unsafe extern "C" fn(agent: *mut TRITONREPOAGENT_Agent) -> *mut TRITONSERVER_Error;
pub type TRITONREPOAGENT_ModelInitialize_t = unsafe extern "C" fn(
    agent: *mut TRITONREPOAGENT_Agent,
    model: *mut TRITONREPOAGENT_AgentModel,
) -> *mut TRITONSERVER_Error;
pub type TRITONREPOAGENT_ModelFinalize_t = unsafe extern "C" fn(
    agent: *mut TRITONREPOAGENT_Agent,
    model: *mut TRITONREPOAGENT_AgentModel,
) -> *mut TRITONSERVER_Error;
pub type TRITONREPOAGENT_ModelAction_t = unsafe extern "C" fn(
    agent: *mut TRITONREPOAGENT_Agent,
    model: *mut TRITONREPOAGENT_AgentModel,
    action_type: TRITONREPOAGENT_ActionType,
) -> *mut TRITONSERVER_Error;

unsafe extern "C" {
    pub fn TRITONREPOAGENT_ApiVersion(major: *mut u32, minor: *mut u32) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelRepositoryLocation(
        agent: *mut TRITONREPOAGENT_Agent,
        model: *mut TRITONREPOAGENT_AgentModel,
        artifact_type: *mut TRITONREPOAGENT_ArtifactType,
        location: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelRepositoryLocationAcquire(
        agent: *mut TRITONREPOAGENT_Agent,
        model: *mut TRITONREPOAGENT_AgentModel,
        artifact_type: TRITONREPOAGENT_ArtifactType,
        location: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelRepositoryLocationRelease(
        agent: *mut TRITONREPOAGENT_Agent,
        model: *mut TRITONREPOAGENT_AgentModel,
        location: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelRepositoryUpdate(
        agent: *mut TRITONREPOAGENT_Agent,
        model: *mut TRITONREPOAGENT_AgentModel,
        artifact_type: TRITONREPOAGENT_ArtifactType,
        location: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelParameterCount(
        agent: *mut TRITONREPOAGENT_Agent,
        model: *mut TRITONREPOAGENT_AgentModel,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelParameter(
        agent: *mut TRITONREPOAGENT_Agent,
        model: *mut TRITONREPOAGENT_AgentModel,
        index: u32,
        parameter_name: *mut *const c_char,
        parameter_value: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelConfig(
        agent: *mut TRITONREPOAGENT_Agent,
        model: *mut TRITONREPOAGENT_AgentModel,
        config_version: u32,
        model_config: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelState(
        model: *mut TRITONREPOAGENT_AgentModel,
        state: *mut *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_ModelSetState(
        model: *mut TRITONREPOAGENT_AgentModel,
        state: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_State(agent: *mut TRITONREPOAGENT_Agent, state: *mut *mut c_void)
        -> *mut TRITONSERVER_Error;
    pub fn TRITONREPOAGENT_SetState(agent: *mut TRITONREPOAGENT_Agent, state: *mut c_void) -> *mut TRITONSERVER_Error;
}
