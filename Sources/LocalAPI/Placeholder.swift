import Seamesh
