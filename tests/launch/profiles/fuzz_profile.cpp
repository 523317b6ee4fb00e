// Any text is either a profile that prints and reads back as itself, or a user error. The first line holds a --set.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "launch/profiles/profile_reader.h"
#include "launch/profiles/set_option.h"

namespace {

using megalith::config::YamlTree;

bool same(const YamlTree& a, const YamlTree& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() || a.members.size() != b.members.size())
    return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  for (size_t i = 0; i < a.members.size(); ++i) {
    if (a.members[i].name != b.members[i].name || !same(a.members[i].value, b.members[i].value)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith;
  using namespace megalith::launch;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(text.find('\n'), text.size());
  Profile profile;
  try {
    YamlTree tree = config::read_yaml_tree(text.substr(line), "fuzz");
    apply_set(tree, text.substr(0, line));
    profile = Profile("fuzz", tree);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::user) std::abort();
    return 0;
  }
  profile.mounts();
  const Profile again("again", config::read_yaml_tree(profile.to_yaml(), "again"));
  for (const ProfileKey& key : profile_keys()) {
    if (key.path.find('[') == std::string_view::npos && !same(profile.tree(key.path), again.tree(key.path)))
      std::abort();
  }
  return 0;
}
