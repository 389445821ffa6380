-- A Wireshark dissector for Cloudburst: the packets of docs/spec.md, section 2. Needs Wireshark 4 or
-- tshark 4.
--
--   once:     tshark -X lua_script:tools/cloudburst.lua -i eth0 -Y cbrst
--   always:   copy it into the folder "Personal Lua Plugins" of Help > About Wireshark > Folders
--
-- Packets are found in two ways, both under Preferences > Protocols > CBRST:
--
--   cbrst.ports      UDP ports whose datagrams are all treated as Cloudburst; 7000 by default.
--                    Other packets on them are shown as malformed, as a receiver would see them.
--   cbrst.heuristic  on by default: datagrams of any other port are treated as Cloudburst if
--                    version, kind, flags and length fit exactly. Receivers choose their ports, and
--                    senders draw theirs, so most captures need it. To switch it off where other
--                    protocols happen to fit: tshark -o cbrst.heuristic:FALSE
--   cbrst.header_tags  off by default: whether SYMBOLs carry header tags, as between endpoints
--                    that both set `trim_dscp`. Packets do not say so. If on, SYMBOLs that
--                    switches have trimmed are shown as such: tshark -o cbrst.header_tags:TRUE
--
-- A captured datagram may contain several packets: see `split`. To see datagrams as they are on the
-- wire, capture on a switch, or without offloads
-- (ethtool -K eth0 gso off gro off tx-udp-segmentation off).
--
-- Fields to filter by are listed below, for example cbrst.report == 2 && cbrst.message == 17. The
-- fields of OPEN and ACCEPT and all payloads are sealed. The dissector has no key, so it cannot tell
-- whether a packet is authentic.

local cbrst = Proto("cbrst", "Cloudburst")

local VERSION = 3
local HELLO, RETRY, OPEN, ACCEPT, SYMBOL, ANSWER, VERSIONS = 1, 2, 3, 4, 5, 6, 15
-- VERSION belongs to no version: its version field is 0.
local KINDS = {
    [HELLO] = "HELLO", [RETRY] = "RETRY", [OPEN] = "OPEN", [ACCEPT] = "ACCEPT",
    [SYMBOL] = "SYMBOL", [ANSWER] = "ANSWER", [VERSIONS] = "VERSION",
}
local STOP_BLOCK, STOP_MESSAGE, NACK, BUSY, REJECT, FORGOTTEN, ALIVE, PULL, ENDED = 1, 2, 3, 4, 5, 6, 7, 8, 9
local REPORTS = {
    [STOP_BLOCK] = "STOP of a block", [STOP_MESSAGE] = "STOP of the message",
    [NACK] = "NACK", [BUSY] = "BUSY", [REJECT] = "REJECT", [FORGOTTEN] = "FORGOTTEN",
    [ALIVE] = "ALIVE", [PULL] = "PULL", [ENDED] = "ENDED",
}
local REASONS = { [1] = "TooLarge", [2] = "Unsupported", [3] = "Corrupt", [4] = "Closing", [5] = "Busy" }
local CODES = {
    [0x10] = "LT, fixed degree", [0x11] = "LT, degree uniform up to", [0x12] = "LT, ideal soliton",
    [0x13] = "LT, robust soliton", [0x14] = "LT, dense", [0x20] = "systematic LT, fixed degree",
    [0x21] = "systematic LT, degree uniform up to", [0x22] = "systematic LT, ideal soliton",
    [0x23] = "systematic LT, robust soliton", [0x24] = "systematic LT, dense",
    [0x30] = "RLF-256", [0x40] = "RaptorQ",
}
local ROLES = { [0] = "plain", [1] = "request", [2] = "response", [3] = "withdrawal" }
local NO_AGE = 0xffffff
local NONE_ACKNOWLEDGED = UInt64.new(0xffffffff, 0xffff)
local TAG = 16
local MAC = 16
local MAX_VERSIONS = 15
local MAX_DELIVERED = 128
-- A block ends in its digest, which the last symbol holds all of.
local MIN_SYMBOL_SIZE = 16
local MAX_INDEX_SET = 16
local HEADER_TAG = 8

-- Bytes of the packets that have one length, and of the others without what varies in them.
local LENGTHS = {
    [HELLO] = 64, [RETRY] = 64, [OPEN] = 138, [ACCEPT] = 104,
    [SYMBOL] = 40 + TAG, [ANSWER] = 14 + TAG, [VERSIONS] = 12 + MAC,
}
-- Bytes of the reports without their arrivals.
local REPORT_LENGTHS = {
    [STOP_BLOCK] = 33, [STOP_MESSAGE] = 33, [NACK] = 19, [BUSY] = 17, [REJECT] = 17,
    [FORGOTTEN] = 16, [ALIVE] = 9, [PULL] = 22, [ENDED] = 8,
}

local f = {
    version = ProtoField.uint8("cbrst.version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("cbrst.kind", "Kind", base.DEC, KINDS, 0x0f),
    -- The handshake.
    count = ProtoField.uint8("cbrst.count", "Sent before"),
    return_path = ProtoField.uint8("cbrst.return_path", "Return path"),
    nonce = ProtoField.uint64("cbrst.nonce", "Nonce", base.HEX),
    current = ProtoField.uint32("cbrst.current", "Current session", base.HEX),
    token_refused = ProtoField.bool("cbrst.token_refused", "Token refused"),
    token = ProtoField.bytes("cbrst.token", "Token"),
    observed_ip = ProtoField.ipv6("cbrst.observed.ip", "Observed address"),
    observed_port = ProtoField.uint16("cbrst.observed.port", "Observed port"),
    ephemeral = ProtoField.bytes("cbrst.ephemeral", "Ephemeral key"),
    sealed = ProtoField.bytes("cbrst.sealed", "Sealed fields"),
    versions = ProtoField.uint8("cbrst.versions", "Versions spoken"),
    spoken = ProtoField.uint8("cbrst.versions.spoken", "Version spoken"),
    mac = ProtoField.bytes("cbrst.mac", "MAC"),
    -- The packets of a session.
    flags = ProtoField.uint8("cbrst.flags", "Flags", base.HEX),
    ack_request = ProtoField.bool("cbrst.flags.ack_request", "ACK request", 8, nil, 0x01),
    partial = ProtoField.bool("cbrst.flags.partial", "Partial", 8, nil, 0x02),
    again = ProtoField.bool("cbrst.flags.again", "Again", 8, nil, 0x04),
    pulled = ProtoField.bool("cbrst.flags.pulled", "Pulled", 8, nil, 0x20),
    probe = ProtoField.bool("cbrst.flags.probe", "Probe", 8, nil, 0x40),
    final = ProtoField.bool("cbrst.flags.final", "Final", 8, nil, 0x80),
    role = ProtoField.uint8("cbrst.flags.role", "Role", base.DEC, ROLES, 0x18),
    class = ProtoField.uint8("cbrst.class", "Class", base.DEC, nil, 0xf0),
    path = ProtoField.uint16("cbrst.path", "Path"),
    session = ProtoField.uint32("cbrst.session", "Session", base.HEX),
    number = ProtoField.uint64("cbrst.number", "Packet number"),
    message = ProtoField.uint64("cbrst.message", "Message"),
    block = ProtoField.uint24("cbrst.block", "Block"),
    tag = ProtoField.bytes("cbrst.tag", "Tag"),
    -- SYMBOL.
    path_number = ProtoField.uint16("cbrst.path_number", "Number on the path"),
    length = ProtoField.uint32("cbrst.length", "Message length"),
    age = ProtoField.uint24("cbrst.age", "Age"),
    symbol = ProtoField.uint32("cbrst.symbol", "Symbol"),
    symbol_size = ProtoField.uint16("cbrst.symbol_size", "Symbol size"),
    code = ProtoField.uint8("cbrst.code", "Code", base.HEX, CODES),
    parameter = ProtoField.uint8("cbrst.code.parameter", "Code parameter"),
    unscheduled = ProtoField.uint16("cbrst.unscheduled", "Symbols sent unscheduled"),
    header_tag = ProtoField.bytes("cbrst.header_tag", "Header tag"),
    trimmed = ProtoField.bool("cbrst.trimmed", "Trimmed"),
    index_set = ProtoField.bytes("cbrst.index_set", "Index set"),
    payload = ProtoField.bytes("cbrst.payload", "Payload (encrypted)"),
    -- ANSWER.
    report = ProtoField.uint8("cbrst.report", "Report", base.DEC, REPORTS),
    acknowledged = ProtoField.uint64("cbrst.acknowledged", "Acknowledged packet"),
    digest = ProtoField.bytes("cbrst.digest", "Digest"),
    needed = ProtoField.uint16("cbrst.needed", "Symbols needed"),
    credit = ProtoField.uint32("cbrst.credit", "Symbols asked for"),
    fin = ProtoField.bool("cbrst.fin", "No more unless some are lost", 8, nil, 0x01),
    next = ProtoField.uint64("cbrst.next", "None delivered from"),
    delivered = ProtoField.bytes("cbrst.delivered", "Delivered before, the last one first"),
    held = ProtoField.bool("cbrst.held", "Held", 8, nil, 0x01),
    reason = ProtoField.uint8("cbrst.reason", "Reason", base.DEC, REASONS),
    arrivals = ProtoField.uint8("cbrst.arrivals", "Arrivals"),
    arrival_path = ProtoField.uint16("cbrst.arrival.path", "Arrived on path"),
    arrival_count = ProtoField.uint16("cbrst.arrival.count", "Symbols arrived"),
    arrival_marked = ProtoField.uint8("cbrst.arrival.marked", "Marked CE, of the last 15"),
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

cbrst.prefs.header_tags = Pref.bool(
    "SYMBOLs carry header tags", false, "Both ends set trim_dscp")

-- The kind of the packet that begins here, or nil and why a receiver would drop it.
local function kind_of(tvb)
    if tvb:len() == 0 then return nil, "an empty datagram" end
    local version, kind = tvb(0, 1):bitfield(0, 4), tvb(0, 1):bitfield(4, 4)
    if version == 0 and kind == VERSIONS then return kind end
    if version ~= VERSION then
        return nil, "of another version: " .. version .. ", expected " .. VERSION
    end
    if not KINDS[kind] or kind == VERSIONS then return nil, "kind " .. kind .. " is not defined" end
    return kind
end

-- What is not defined in the second byte of a packet, or nil.
local function false_flag(tvb, kind)
    local flags = tvb(1, 1):uint()
    if kind == RETRY and flags > 1 then return "an answer to a packet that is not defined" end
    if kind == VERSIONS and flags > MAX_VERSIONS then return flags .. " versions" end
    if kind == ANSWER and flags > 0 then return "a flag that is not defined" end
    if kind == SYMBOL then
        if tvb(1, 1):bitfield(0, 2) == 2 then return "final, and no probe" end
    end
    return nil
end

-- Bytes of the report at `at`, or nil and what it lacks.
local function measure_report(tvb, at)
    local report = tvb(at, 1):uint()
    local len = REPORT_LENGTHS[report]
    if not len then return nil, "report " .. report .. " is not defined" end
    -- Where what varies has not come, the length of all else says so.
    if at + len > tvb:len() then return len end
    if report == REJECT and not REASONS[tvb(at + 16, 1):uint()] then
        return nil, "a reason that is not defined"
    end
    if report == BUSY and tvb(at + 16, 1):uint() > 1 then return nil, "a flag that is not defined" end
    if report <= NACK or report == PULL then len = len + 4 * tvb(at + len - 1, 1):uint() end
    if report == ENDED then
        local bytes = tvb(at + len - 1, 1):uint()
        if bytes > MAX_DELIVERED then return nil, bytes .. " bytes of an ENDED" end
        len = len + bytes
    end
    return len
end

-- Where an ANSWER may end: behind each report, after a tag. Only the datagram's end tells which
-- report is the last.
local function ends_of_answer(tvb)
    local ends, at = {}, LENGTHS[ANSWER] - TAG
    repeat
        local len, why = measure_report(tvb, at)
        if not len then return ends, why end
        at = at + len
        ends[#ends + 1] = at + TAG
    until at + TAG >= tvb:len()
    return ends
end

local function is_pulled(tvb) return tvb(1, 1):bitfield(2) > 0 end

local function is_probe(tvb) return tvb(1, 1):bitfield(1) > 0 end

-- Bytes of a SYMBOL before its index set, and of its payload: probes have neither.
local function parts_of_symbol(tvb)
    local fields = LENGTHS[SYMBOL] - TAG + (is_pulled(tvb) and 2 or 0)
        + (cbrst.prefs.header_tags and HEADER_TAG or 0)
    return fields, is_probe(tvb) and 0 or tvb(36, 2):uint()
end

-- Whether a switch has cut off the end of a SYMBOL.
local function is_trimmed(tvb)
    if not cbrst.prefs.header_tags or is_probe(tvb) then return false end
    local fields, payload = parts_of_symbol(tvb)
    return tvb:len() >= fields and tvb:len() < fields + payload + TAG
end

-- Where a SYMBOL may end: its index set has any length up to the longest.
local function ends_of_symbol(tvb)
    local size = tvb(36, 2):uint()
    if size < MIN_SYMBOL_SIZE then return {}, "symbols of " .. size .. " bytes" end
    local fields, payload = parts_of_symbol(tvb)
    if payload == 0 then return { fields + TAG } end
    if is_trimmed(tvb) then return { tvb:len() } end
    local ends = {}
    for index_set = 0, MAX_INDEX_SET do
        ends[#ends + 1] = fields + index_set + payload + TAG
    end
    return ends
end

-- The lengths that the packet may have which begins here, the least first; and, where its fields
-- make no sense from some place on, why a receiver would drop it.
local function measure(tvb)
    local kind, why = kind_of(tvb)
    if not kind then return {}, why end
    local least = LENGTHS[kind]
    -- A trimmed SYMBOL may be shorter than a whole one, but not than its fields.
    local fields = kind == SYMBOL and least - TAG or least
    if tvb:len() < fields then return { least } end
    why = false_flag(tvb, kind)
    if why then return {}, why end
    if kind == SYMBOL then return ends_of_symbol(tvb) end
    if kind == ANSWER then return ends_of_answer(tvb) end
    if kind == VERSIONS then return { least + tvb(1, 1):uint() } end
    -- Zeros may come before its MAC.
    if kind == HELLO then return { tvb:len() } end
    return { least }
end

local function contains(list, wanted)
    for _, item in ipairs(list) do
        if item == wanted then return true end
    end
    return false
end

-- The packets of a batch: all of them have this length, the last may be shorter. Or nil.
local function batch(tvb, len)
    local packets = {}
    for at = 0, tvb:len() - 1, len do
        local packet = tvb(at, math.min(len, tvb:len() - at)):tvb()
        if not contains(measure(packet), packet:len()) then return nil end
        packets[#packets + 1] = packet
    end
    return packets
end

-- The packets in a datagram: one, or several where the capture was made on a host whose system
-- cuts batches into datagrams after it (GSO), or joins them before it (GRO). Or nil and why not.
local function split(tvb)
    local len = tvb:len()
    local ends, why = measure(tvb)
    if contains(ends, len) then return { tvb } end
    for _, first in ipairs(ends) do
        local packets = first < len and batch(tvb, first)
        if packets then return packets end
    end
    if why then return nil, why end
    local expected = ends[1] < ends[#ends] and len > ends[1] and ends[#ends] or ends[1]
    return nil, len .. " bytes, expected " .. expected
end

local function head(tvb, tree)
    tree:add(f.path, tvb(2, 2))
    tree:add(f.nonce, tvb(4, 8))
    return "path=" .. tvb(2, 2):uint() .. " nonce=" .. tostring(tvb(4, 8))
end

-- The Noise message at `at`, and the MAC behind it.
local function noise(tvb, tree, at)
    local mac = tvb:len() - MAC
    tree:add(f.ephemeral, tvb(at, 32))
    tree:add(f.sealed, tvb(at + 32, mac - at - 32))
    tree:add(f.mac, tvb(mac, MAC))
end

local function hello(tvb, tree)
    tree:add(f.count, tvb(1, 1))
    local info = head(tvb, tree)
    local current = tree:add(f.current, tvb(12, 4))
    if tvb(12, 4):uint() == 0 then
        current:append_text(" (none)")
    else
        tree:add(f.number, tvb(16, 6))
        tree:add(f.tag, tvb(22, TAG))
        info = info .. " current=0x" .. tostring(tvb(12, 4))
    end
    tree:add(f.mac, tvb(tvb:len() - MAC, MAC))
    return info
end

local function retry(tvb, tree)
    tree:add(f.token_refused, tvb(1, 1))
    local info = head(tvb, tree)
    tree:add(f.token, tvb(12, 16))
    tree:add(f.observed_ip, tvb(28, 16))
    tree:add(f.observed_port, tvb(44, 2))
    tree:add(f.return_path, tvb(46, 1))
    tree:add(f.mac, tvb(48, MAC))
    return info .. (tvb(1, 1):uint() == 1 and " (token refused)" or "")
end

local function open(tvb, tree)
    tree:add(f.return_path, tvb(1, 1))
    local info = head(tvb, tree)
    tree:add(f.token, tvb(12, 16))
    noise(tvb, tree, 28)
    return info
end

local function accept(tvb, tree)
    local info = head(tvb, tree)
    noise(tvb, tree, 12)
    return info
end

local function versions(tvb, tree)
    local count, spoken = tvb(1, 1):uint(), {}
    local list = tree:add(f.versions, tvb(1, 1))
    tree:add(f.nonce, tvb(4, 8))
    for i = 1, count do
        list:add(f.spoken, tvb(11 + i, 1))
        spoken[i] = tvb(11 + i, 1):uint()
    end
    tree:add(f.mac, tvb(12 + count, MAC))
    return "nonce=" .. tostring(tvb(4, 8)) .. " spoken=" .. table.concat(spoken, ",")
end

local function prefix(tvb, tree)
    local path = tvb(2, 2):bitfield(4, 12)
    tree:add(f.class, tvb(2, 1))
    tree:add(f.path, tvb(2, 2), path)
    tree:add(f.session, tvb(4, 4))
    tree:add(f.number, tvb(8, 6))
    return "class=" .. tvb(2, 1):bitfield(0, 4) .. " path=" .. path
end

local function symbol_flags(tvb, tree)
    local flags = tree:add(f.flags, tvb(1, 1))
    flags:add(f.ack_request, tvb(1, 1))
    flags:add(f.partial, tvb(1, 1))
    flags:add(f.again, tvb(1, 1))
    flags:add(f.role, tvb(1, 1))
    flags:add(f.pulled, tvb(1, 1))
    flags:add(f.probe, tvb(1, 1))
    flags:add(f.final, tvb(1, 1))
end

local function symbol(tvb, tree)
    symbol_flags(tvb, tree)
    local info = "message=" .. tostring(tvb(16, 6):uint64()) .. " " .. prefix(tvb, tree)
    local fields, payload = parts_of_symbol(tvb)
    local tag = tvb:len() - TAG
    tree:add(f.path_number, tvb(14, 2))
    tree:add(f.message, tvb(16, 6))
    tree:add(f.length, tvb(22, 4))
    local age = tree:add(f.age, tvb(26, 3))
    if tvb(26, 3):uint() == NO_AGE then age:append_text(" (says nothing)") end
    tree:add(f.block, tvb(29, 3))
    tree:add(f.symbol, tvb(32, 4))
    tree:add(f.symbol_size, tvb(36, 2))
    local code = tree:add(f.code, tvb(38, 1))
    if not CODES[tvb(38, 1):uint()] then code:add_proto_expert_info(false_code) end
    tree:add(f.parameter, tvb(39, 1))
    if is_pulled(tvb) then tree:add(f.unscheduled, tvb(40, 2)) end
    if cbrst.prefs.header_tags then
        tree:add(f.header_tag, tvb(fields - HEADER_TAG, HEADER_TAG))
    end
    info = info .. " block=" .. tvb(29, 3):uint() .. " symbol=" .. tvb(32, 4):uint()
        .. (tvb(1, 1):bitfield(7) > 0 and " ack-request" or "") .. (is_pulled(tvb) and " pulled" or "")
        .. (is_probe(tvb) and " probe" or "") .. (tvb(1, 1):bitfield(0) > 0 and " final" or "")
    if is_trimmed(tvb) then
        tree:add(f.trimmed, tvb(0, 0), true)
        return info .. " trimmed"
    end
    if tag - payload > fields then
        tree:add(f.index_set, tvb(fields, tag - payload - fields))
    end
    if payload > 0 then tree:add(f.payload, tvb(tag - payload, payload)) end
    tree:add(f.tag, tvb(tag, TAG))
    return info
end

local function arrivals(tvb, tree, at)
    local count = tvb(at, 1):uint()
    local list = tree:add(f.arrivals, tvb(at, 1))
    for i = 0, count - 1 do
        list:add(f.arrival_marked, tvb(at + 1 + 4 * i, 1), tvb(at + 1 + 4 * i, 1):bitfield(0, 4))
        list:add(f.arrival_path, tvb(at + 1 + 4 * i, 2), tvb(at + 1 + 4 * i, 2):bitfield(4, 12))
        list:add(f.arrival_count, tvb(at + 3 + 4 * i, 2))
    end
end

local function report_on_message(tvb, tree, report)
    tree:add(f.message, tvb(1, 6))
    tree:add(f.block, tvb(7, 3))
    local acknowledged = tree:add(f.acknowledged, tvb(10, 6))
    if tvb(10, 6):uint64() == NONE_ACKNOWLEDGED then acknowledged:append_text(" (to no symbol)") end
    local info = " message=" .. tostring(tvb(1, 6):uint64()) .. " block=" .. tvb(7, 3):uint()
    if report == STOP_BLOCK or report == STOP_MESSAGE then
        tree:add(f.digest, tvb(16, 16))
        arrivals(tvb, tree, 32)
    elseif report == NACK then
        tree:add(f.needed, tvb(16, 2))
        arrivals(tvb, tree, 18)
        info = info .. " needed=" .. tvb(16, 2):uint()
    elseif report == PULL then
        tree:add(f.credit, tvb(16, 4))
        tree:add(f.fin, tvb(20, 1))
        arrivals(tvb, tree, 21)
        info = info .. " credit=" .. tvb(16, 4):uint() .. (tvb(20, 1):uint() % 2 == 1 and " fin" or "")
    elseif report == BUSY then
        tree:add(f.held, tvb(16, 1))
        info = info .. (tvb(16, 1):uint() == 1 and " held" or "")
    elseif report == REJECT then
        tree:add(f.reason, tvb(16, 1))
        info = info .. " (" .. REASONS[tvb(16, 1):uint()] .. ")"
    end
    return info
end

local function answer(tvb, tree)
    tree:add(f.flags, tvb(1, 1))
    local info = prefix(tvb, tree)
    local at = LENGTHS[ANSWER] - TAG
    while at < tvb:len() - TAG do
        local one, report = tvb(at, measure_report(tvb, at)):tvb(), tvb(at, 1):uint()
        local subtree = tree:add(f.report, one(0, 1))
        info = info .. "; " .. REPORTS[report]
        if report == ALIVE then
            subtree:add(f.nonce, one(1, 8))
            info = info .. " nonce=" .. tostring(one(1, 8))
        elseif report == ENDED then
            subtree:add(f.next, one(1, 6))
            local bytes = one(7, 1):uint()
            if bytes > 0 then subtree:add(f.delivered, one(8, bytes)) end
            info = info .. " next=" .. tostring(one(1, 6):uint64())
        else
            info = info .. report_on_message(one, subtree, report)
        end
        at = at + one:len()
    end
    tree:add(f.tag, tvb(at, TAG))
    return info
end

local SHOW = {
    [HELLO] = hello, [RETRY] = retry, [OPEN] = open, [ACCEPT] = accept,
    [SYMBOL] = symbol, [ANSWER] = answer, [VERSIONS] = versions,
}

local function dissect(tvb, root)
    local tree = root:add(cbrst, tvb())
    tree:add(f.version, tvb(0, 1))
    tree:add(f.kind, tvb(0, 1))
    local kind = tvb(0, 1):bitfield(4, 4)
    tree:append_text(", " .. KINDS[kind])
    return KINDS[kind] .. " " .. SHOW[kind](tvb, tree)
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
