-- Wireshark's view of Cloudburst: the packets of docs/spec.md, section 2. Needs Wireshark 4 or
-- tshark 4.
--
--   once:     tshark -X lua_script:scripts/cloudburst.lua -i eth0 -Y cbrst
--   for good: copy it into the folder "Personal Lua Plugins" of Help > About Wireshark > Folders
--
-- Packets are found in two ways, both under Preferences > Protocols > CBRST:
--
--   cbrst.ports      UDP ports whose datagrams are all taken for Cloudburst, 7000 unless changed.
--                    What is none there is shown as malformed, as a receiver would see it.
--   cbrst.heuristic  on unless changed: datagrams of any other port are taken for Cloudburst if
--                    version, kind, flags and length fit exactly. Receivers choose their ports, and
--                    senders draw theirs, so most captures need it. Off, for a capture where other
--                    protocols happen to fit: tshark -o cbrst.heuristic:FALSE
--
-- A datagram may show several packets: see `split`. Capture on a switch, or without offloads
-- (ethtool -K eth0 gso off gro off tx-udp-segmentation off), to see datagrams as they are on the
-- wire.
--
-- Fields to filter by are listed below: cbrst.kind == 4 && cbrst.message == 17, for one. Payloads
-- are sealed, and nothing here has a key: whether a packet is authentic is not known.

local cbrst = Proto("cbrst", "Cloudburst")

local KINDS = {
    [1] = "HELLO", [2] = "HELLO_ACK", [3] = "SYMBOL", [4] = "STOP",
    [5] = "STATUS", [6] = "BUSY", [7] = "REJECT", [8] = "FORGOTTEN",
}
local SCOPES = { [0] = "block decoded", [1] = "message delivered" }
local REASONS = { [1] = "TooLarge", [2] = "Unsupported", [3] = "Corrupt", [4] = "Closing" }
local CODES = {
    [0x10] = "LT, fixed degree", [0x11] = "LT, degree uniform up to", [0x12] = "LT, ideal soliton",
    [0x13] = "LT, robust soliton", [0x14] = "LT, dense", [0x20] = "systematic LT, fixed degree",
    [0x21] = "systematic LT, degree uniform up to", [0x22] = "systematic LT, ideal soliton",
    [0x23] = "systematic LT, robust soliton", [0x24] = "systematic LT, dense",
    [0x30] = "RLF-256", [0x40] = "RaptorQ",
}
local ROLES = { [0] = "plain", [1] = "request", [2] = "response" }
local NONE_ACKNOWLEDGED = UInt64.new(0xffffffff, 0xffffffff)
local TAG = 16

local f = {
    version = ProtoField.uint8("cbrst.version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("cbrst.kind", "Kind", base.DEC, KINDS, 0x0f),
    flags = ProtoField.uint8("cbrst.flags", "Flags", base.HEX),
    ack_request = ProtoField.bool("cbrst.flags.ack_request", "ACK request", 8, nil, 0x01),
    partial = ProtoField.bool("cbrst.flags.partial", "Partial", 8, nil, 0x02),
    again = ProtoField.bool("cbrst.flags.again", "Again", 8, nil, 0x04),
    role = ProtoField.uint8("cbrst.flags.role", "Role", base.DEC, ROLES, 0x18),
    path = ProtoField.uint16("cbrst.path", "Path"),
    session = ProtoField.uint64("cbrst.session", "Session", base.HEX),
    number = ProtoField.uint64("cbrst.number", "Packet number"),
    message = ProtoField.uint64("cbrst.message", "Message"),
    length = ProtoField.uint64("cbrst.length", "Message length"),
    age = ProtoField.uint32("cbrst.age", "Age"),
    block = ProtoField.uint32("cbrst.block", "Block"),
    symbol = ProtoField.uint32("cbrst.symbol", "Symbol"),
    symbol_size = ProtoField.uint16("cbrst.symbol_size", "Symbol size"),
    code = ProtoField.uint8("cbrst.code", "Code", base.HEX, CODES),
    parameter = ProtoField.uint8("cbrst.code.parameter", "Code parameter"),
    digest = ProtoField.bytes("cbrst.digest", "Digest"),
    index_set_len = ProtoField.uint8("cbrst.index_set_len", "Index set length"),
    index_set = ProtoField.bytes("cbrst.index_set", "Index set"),
    payload = ProtoField.bytes("cbrst.payload", "Payload (encrypted)"),
    tag = ProtoField.bytes("cbrst.tag", "Tag"),
    acknowledged = ProtoField.uint64("cbrst.acknowledged", "Acknowledged packet"),
    scope = ProtoField.uint8("cbrst.scope", "Scope", base.DEC, SCOPES),
    needed = ProtoField.uint16("cbrst.needed", "Symbols needed"),
    reason = ProtoField.uint8("cbrst.reason", "Reason", base.DEC, REASONS),
    arrivals = ProtoField.uint8("cbrst.arrivals", "Arrivals"),
    arrival_path = ProtoField.uint16("cbrst.arrival.path", "Arrived on path"),
    arrival_count = ProtoField.uint16("cbrst.arrival.count", "Symbols arrived"),
    initiator = ProtoField.bytes("cbrst.initiator", "Initiator"),
    responder = ProtoField.bytes("cbrst.responder", "Responder"),
    nonce = ProtoField.uint64("cbrst.nonce", "Nonce", base.HEX),
    session_nonce = ProtoField.bytes("cbrst.session_nonce", "Session nonce"),
    port = ProtoField.uint16("cbrst.port", "Port for messages"),
    more_ports = ProtoField.uint8("cbrst.more_ports", "More ports"),
    current = ProtoField.uint64("cbrst.current", "Current session", base.HEX),
    current_alive = ProtoField.uint8("cbrst.current_alive", "Current session lives"),
    mac = ProtoField.bytes("cbrst.mac", "MAC"),
}
cbrst.fields = f

local malformed = ProtoExpert.new(
    "cbrst.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local false_code = ProtoExpert.new(
    "cbrst.unknown_code", "Unknown code", expert.group.PROTOCOL, expert.severity.WARN)
cbrst.experts = { malformed, false_code }

cbrst.prefs.ports = Pref.range("UDP ports", "7000", "Ports that carry nothing else", 65535)
cbrst.prefs.heuristic = Pref.bool(
    "Find packets on other ports", true, "By version, kind, flags and length")

-- The length of the packet that begins here, or nil and why a receiver would drop it for its shape.
local function measure(tvb)
    local len = tvb:len()
    if len == 0 then return nil, "an empty datagram" end
    local version, kind = tvb(0, 1):bitfield(0, 4), tvb(0, 1):bitfield(4, 4)
    if version ~= 1 then return nil, "version " .. version .. ", expected 1" end
    if not KINDS[kind] then return nil, "kind " .. kind .. " is not defined" end
    -- Bytes without what is of variable length.
    local fixed = ({ 80, 80, 85, 74, 59, 56, 57, 56 })[kind]
    local expected = fixed
    if len >= fixed then
        if kind > 2 and (tvb(1, 1):bitfield(0, 3) > 0 or not ROLES[tvb(1, 1):bitfield(3, 2)]) then
            return nil, "a flag or a role that is not defined"
        end
        if kind == 3 then
            expected = fixed + tvb(68, 1):uint() + tvb(48, 2):uint()
        elseif kind == 4 then
            if not SCOPES[tvb(40, 1):uint()] then return nil, "a scope that is not defined" end
            expected = fixed + 4 * tvb(57, 1):uint()
        elseif kind == 5 then
            expected = fixed + 4 * tvb(42, 1):uint()
        elseif kind == 7 and not REASONS[tvb(40, 1):uint()] then
            return nil, "a reason that is not defined"
        end
    end
    if len < expected then return nil, len .. " bytes, expected " .. expected end
    return expected
end

-- The packets in a datagram: one, or several where the capture was made on a host whose system
-- cuts batches into datagrams after it (GSO), or joins them before it (GRO). Or nil and why not.
local function split(tvb)
    local packets, at = {}, 0
    repeat
        local rest = tvb(at):tvb()
        local len, why = measure(rest)
        if not len then
            if at == 0 then return nil, why end
            return nil, tvb:len() .. " bytes, expected " .. at
        end
        packets[#packets + 1] = rest(0, len):tvb()
        at = at + len
    until at == tvb:len()
    return packets
end

local function hello(tvb, tree)
    tree:add(f.path, tvb(2, 2))
    tree:add(f.initiator, tvb(4, 16))
    tree:add(f.nonce, tvb(20, 8))
    tree:add(f.port, tvb(28, 2))
    tree:add(f.current, tvb(30, 8))
    tree:add(f.more_ports, tvb(38, 1))
    tree:add(f.mac, tvb(64, 16))
    return "path=" .. tvb(2, 2):uint()
end

local function hello_ack(tvb, tree)
    tree:add(f.path, tvb(2, 2))
    tree:add(f.initiator, tvb(4, 16))
    tree:add(f.nonce, tvb(20, 8))
    tree:add(f.responder, tvb(28, 16))
    tree:add(f.session_nonce, tvb(44, 16))
    tree:add(f.current_alive, tvb(60, 1))
    tree:add(f.more_ports, tvb(61, 1))
    tree:add(f.port, tvb(62, 2))
    tree:add(f.mac, tvb(64, 16))
    return "path=" .. tvb(2, 2):uint()
end

local function prefix(tvb, tree)
    local flags = tree:add(f.flags, tvb(1, 1))
    flags:add(f.ack_request, tvb(1, 1))
    flags:add(f.partial, tvb(1, 1))
    flags:add(f.again, tvb(1, 1))
    flags:add(f.role, tvb(1, 1))
    tree:add(f.path, tvb(2, 2))
    tree:add(f.session, tvb(4, 8))
    tree:add(f.number, tvb(12, 8))
    tree:add(f.message, tvb(20, 8))
    return "message=" .. tostring(tvb(20, 8):uint64()) .. " path=" .. tvb(2, 2):uint()
end

local function symbol(tvb, tree)
    local info = prefix(tvb, tree)
    local set, size = tvb(68, 1):uint(), tvb(48, 2):uint()
    tree:add(f.length, tvb(28, 8))
    tree:add(f.age, tvb(36, 4))
    tree:add(f.block, tvb(40, 4))
    tree:add(f.symbol, tvb(44, 4))
    tree:add(f.symbol_size, tvb(48, 2))
    local code = tree:add(f.code, tvb(50, 1))
    if not CODES[tvb(50, 1):uint()] then code:add_proto_expert_info(false_code) end
    tree:add(f.parameter, tvb(51, 1))
    tree:add(f.digest, tvb(52, 16))
    tree:add(f.index_set_len, tvb(68, 1))
    if set > 0 then tree:add(f.index_set, tvb(69, set)) end
    if size > 0 then tree:add(f.payload, tvb(69 + set, size)) end
    tree:add(f.tag, tvb(69 + set + size, TAG))
    local ack_request = tvb(1, 1):uint() % 2 == 1 and " ack-request" or ""
    return info .. " block=" .. tvb(40, 4):uint() .. " symbol=" .. tvb(44, 4):uint() .. ack_request
end

local function arrivals(tvb, tree, at)
    local count = tvb(at, 1):uint()
    local list = tree:add(f.arrivals, tvb(at, 1))
    for i = 0, count - 1 do
        list:add(f.arrival_path, tvb(at + 1 + 4 * i, 2))
        list:add(f.arrival_count, tvb(at + 3 + 4 * i, 2))
    end
end

local function answer(tvb, tree, kind)
    local info = prefix(tvb, tree) .. " block=" .. tvb(28, 4):uint()
    tree:add(f.block, tvb(28, 4))
    local acknowledged = tree:add(f.acknowledged, tvb(32, 8))
    if tvb(32, 8):uint64() == NONE_ACKNOWLEDGED then acknowledged:append_text(" (to no symbol)") end
    if kind == 4 then
        local scope = tvb(40, 1):uint()
        tree:add(f.scope, tvb(40, 1))
        tree:add(f.digest, tvb(41, 16))
        arrivals(tvb, tree, 57)
        info = info .. " (" .. SCOPES[scope] .. ")"
    elseif kind == 5 then
        tree:add(f.needed, tvb(40, 2))
        arrivals(tvb, tree, 42)
        info = info .. " needed=" .. tvb(40, 2):uint()
    elseif kind == 7 then
        tree:add(f.reason, tvb(40, 1))
        info = info .. " (" .. REASONS[tvb(40, 1):uint()] .. ")"
    end
    tree:add(f.tag, tvb(tvb:len() - TAG, TAG))
    return info
end

local function dissect(tvb, root)
    local tree = root:add(cbrst, tvb())
    tree:add(f.version, tvb(0, 1))
    tree:add(f.kind, tvb(0, 1))
    local kind = tvb(0, 1):bitfield(4, 4)
    local info
    if kind == 1 then info = hello(tvb, tree)
    elseif kind == 2 then info = hello_ack(tvb, tree)
    elseif kind == 3 then info = symbol(tvb, tree)
    else info = answer(tvb, tree, kind) end
    tree:append_text(", " .. KINDS[kind])
    return KINDS[kind] .. " " .. info
end

local function dissect_all(packets, pinfo, root)
    pinfo.cols.protocol = "CBRST"
    for i, packet in ipairs(packets) do
        local info = dissect(packet, root)
        if i == 1 then pinfo.cols.info = info end
    end
    if #packets > 1 then pinfo.cols.info:append(" and " .. #packets - 1 .. " more") end
end

local function mark_malformed(tvb, pinfo, root, why)
    pinfo.cols.protocol = "CBRST"
    pinfo.cols.info = "[malformed: " .. why .. "]"
    local tree = root:add(cbrst, tvb())
    if tvb:len() > 0 then
        tree:add(f.version, tvb(0, 1))
        tree:add(f.kind, tvb(0, 1))
    end
    tree:add_proto_expert_info(malformed, "Malformed: " .. why)
end

-- A capture that cut packets short knows less than the receiver did: their shape says nothing.
local function is_cut(tvb) return tvb:len() < tvb:reported_len() end

function cbrst.dissector(tvb, pinfo, root)
    if is_cut(tvb) then
        pinfo.cols.protocol = "CBRST"
        root:add(cbrst, tvb()):append_text(", cut short by the capture")
        return tvb:len()
    end
    local packets, why = split(tvb)
    if packets then
        dissect_all(packets, pinfo, root)
    else
        mark_malformed(tvb, pinfo, root, why)
    end
    return tvb:len()
end

local function heuristic(tvb, pinfo, root)
    if not cbrst.prefs.heuristic or is_cut(tvb) then return false end
    local packets = split(tvb)
    if not packets then return false end
    dissect_all(packets, pinfo, root)
    return true
end

local table_of_ports = DissectorTable.get("udp.port")
local ports = tostring(cbrst.prefs.ports)
table_of_ports:add(ports, cbrst)
function cbrst.prefs_changed()
    local now = tostring(cbrst.prefs.ports)
    if now == ports then return end
    if ports ~= "" then table_of_ports:remove(ports, cbrst) end
    if now ~= "" then table_of_ports:add(now, cbrst) end
    ports = now
end

cbrst:register_heuristic("udp", heuristic)
