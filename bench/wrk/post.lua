-- post.lua: POST of a body of a given size, with Content-Length or in chunks.
--
--   wrk -t1 -c32 -d5s -s bench/wrk/post.lua URL -- bytes=65536 [chunk=0] [host=NAME]
--
-- chunk: size of each chunk in bytes; 0 sends Content-Length.

local figures = dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "figures.lua")

setup = figures.setup
done = figures.done("post")

local request_text

local function chunked(body, size)
   local parts = {}
   for from = 1, #body, size do
      local part = body:sub(from, from + size - 1)
      table.insert(parts, string.format("%x\r\n%s\r\n", #part, part))
   end
   return table.concat(parts) .. "0\r\n\r\n"
end

function init(arguments)
   local options = figures.options(arguments, { bytes = 4096, chunk = 0, host = "" })
   local body = string.rep("x", options.bytes)
   local headers = { ["Content-Type"] = "application/octet-stream" }
   if options.host ~= "" then headers["Host"] = options.host end
   if options.chunk > 0 then
      headers["Transfer-Encoding"] = "chunked"
      request_text = wrk.format("POST", nil, headers, "") -- wrk would add a Content-Length
      request_text = request_text:gsub("Content%-Length: 0\r\n", "") .. chunked(body, options.chunk)
   else
      request_text = wrk.format("POST", nil, headers, body)
   end
end

function request()
   return request_text
end
